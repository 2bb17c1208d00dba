"""A run that does nothing but save, killed again and again: python -m tests.run_folder.killing

This process imports TensorFlow and Reverb once, and runs no op. Each launch of the run is a fork: a
learner with the project's saver, and the replay's two servers. It goes on from what the one before
has left, checks that it is whole, then learns and saves without a pause until SIGKILL ends it.

Arguments: a folder, how many launches, a seed. Each launch is a line of JSON on standard output.
"""

import itertools
import json
import os
import pathlib
import random
import signal
import sys
import time
from multiprocessing import Pipe, connection
from types import SimpleNamespace
from typing import Any

import numpy as np
import reverb
import tensorflow as tf

from agents.learner import Fetched, Learner
from run_folder import checkpoints, disk, resuming, saver
from run_folder.layout import learner_label
from run_folder.settings import Settings
from tests.forks import fork
from tests.patience import PATIENCE
from tests.run_folder import saved_runs
from tests.run_folder.saving import save_all

AGENT = "r2d2"
SHARDS = 2
_VARIABLES, _VALUES = 5, 20_000  # so many, each of so many numbers
_MOST_SAVES = 2  # of a launch, before the one that is cut short
_SAVE_SECONDS = 0.05  # until one has been seen
_GO_BACK = 0.3  # of the launches go back to a learner that was kept
_TABLE_SIZE = 60


class Update(tf.Module):
    """Stands for a learner's: all its variables hold one number, another one after each update."""

    def __init__(self) -> None:
        super().__init__()
        self.weights = [tf.Variable(tf.zeros([_VALUES]), name=f"w{i}") for i in range(_VARIABLES)]
        self.network = SimpleNamespace(variables=self.weights)

    def __call__(self, batch: Any) -> tuple[None, dict[str, float]]:
        number = float(np.random.randint(1, 10**6))
        for weights in self.weights:
            weights.assign(tf.fill([_VALUES], number))
        return None, {"loss": 0.0, "gradient_norm": 0.0}


def learn(
    run: Settings, say: connection.Connection, expected: set[int | None], go_back: int | None
) -> None:
    """Does all that a launch does, until it is killed.

    Args:
      run: its settings.
      say: tells the parent what it began with, when a save begins, and when it is done.
      expected: where the launches before can have left the run; None where nothing was saved.
      go_back: where to, of the kept learners, counted from the newest; None goes on.
    """
    folder, update = run.folder.checkpoints, Update()
    kept = checkpoints.kept_steps(folder, AGENT)
    step = kept[-1 - go_back % len(kept)] if go_back is not None and kept else None
    found = resuming.manifests(run, {AGENT: update}, step=step, with_replay=step is None)
    last = found.get(AGENT)
    batch: Any = SimpleNamespace(mask=tf.ones([1, 1]), reward=tf.zeros([1, 1]))
    learner = Learner(update, Fetched(itertools.repeat(batch)))
    if last is not None:
        learner.read_checkpoint(str(folder / last.learner))
        assert learner.learner_steps == last.learner_step
        assert len({number for w in update.weights for number in w.numpy().tolist()}) == 1
    at = last.learner_step if last else None
    assert step is not None or at in expected, (at, expected)
    servers = [
        reverb.Server(
            [
                reverb.Table(
                    AGENT,
                    sampler=reverb.selectors.Uniform(),
                    remover=reverb.selectors.Fifo(),
                    max_size=_TABLE_SIZE,
                    rate_limiter=reverb.rate_limiters.MinSize(1),
                )
            ],
            checkpointer=saver.replay_checkpointer(folder, last.replay if last else None, shard),
        )
        for shard in range(SHARDS)
    ]
    clients = [reverb.Client(f"localhost:{server.port}") for server in servers]
    check_items(clients, last.replay_items if last else 0)
    say.send(dict(event="ready", step=at, back=step is not None, left=left(folder)))
    writer = saver.Saver(folder, AGENT, learner.write_checkpoint, clients, 1, last)
    for number in itertools.count():
        learner.step()
        for client in clients:
            client.insert(np.full([100], float(number)), {AGENT: 1.0})
        counts = saved_runs.COUNTS | {"trained_steps": float(learner.learner_steps)}
        say.send(dict(event="saving"))
        began = time.monotonic()
        save = save_all if number % 3 != 1 else saver.Saver.save
        save(writer, learner.learner_steps, counts)
        seconds = time.monotonic() - began
        assert not (unnamed := left(folder)), unnamed
        say.send(dict(event="saved", step=learner.learner_steps, seconds=seconds))


def check_items(clients: list[reverb.Client], items: int) -> None:
    """Fails unless the servers hold so many items, each of them whole."""
    sizes = [client.server_info(timeout=int(PATIENCE))[AGENT].current_size for client in clients]
    assert sum(sizes) == items, sizes
    for client, size in zip(clients, sizes, strict=True):
        for sample in client.sample(AGENT, size, emit_timesteps=False) if size else ():
            assert len(set(np.ravel(sample.data[0]).tolist())) == 1


def left(folder: pathlib.Path) -> list[str]:
    """Files and folders of checkpoints that no manifest names."""
    named = {checkpoints.MANIFEST}
    manifests = [checkpoints.read(folder)]
    for step in checkpoints.kept_steps(folder, AGENT):
        manifests.append(checkpoints.read_kept(folder, AGENT, step))
        named.add(f"{learner_label(AGENT)}/manifest-{step}.json")
    for manifest in manifests:
        named |= set(manifest.sizes) if manifest else set()
    named |= {str(parent) for name in named for parent in pathlib.Path(name).parents}
    there = {str(path.relative_to(folder)) for path in folder.rglob("*")}
    empty = {"replay", "staging", *(f"staging/{shard}" for shard in range(SHARDS))}
    return sorted(there - named - empty)


def launch(
    run: Settings, saves: int, seconds: float, expected: set[int | None], go_back: int | None
) -> list[dict[str, Any]]:
    """Launches the run, kills it so many seconds after it begins another save; what it said."""
    ours, theirs = Pipe(duplex=False)
    learner = fork(lambda: learn(run, theirs, expected, go_back))
    theirs.close()
    heard = []
    try:
        heard.append(ours.recv())  # EOFError where what was left could not be gone on from
        while sum(told["event"] == "saving" for told in heard) <= saves:
            heard.append(ours.recv())
        time.sleep(seconds)
    finally:
        os.kill(learner, signal.SIGKILL)
        code = os.waitstatus_to_exitcode(os.waitpid(learner, 0)[1])
    assert code == -signal.SIGKILL, code
    while ours.poll():
        try:
            heard.append(ours.recv())
        except EOFError:
            break
    return [told for told in heard if told["event"] != "saving"]


def main() -> None:
    """Launches the run as often as the command line says."""
    folder, launches, seed = pathlib.Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    random.seed(seed)
    run = saved_runs.settings_of(folder, AGENT, "catch", num_replay_shards=SHARDS)
    (folder / "checkpoints").mkdir(parents=True)
    disk.write(folder / "config.json", run.to_json())
    expected: set[int | None] = {None}
    seconds = _SAVE_SECONDS
    for _ in range(launches):
        go_back = random.randrange(1, 12) if random.random() < _GO_BACK else None
        saves, share = random.randint(0, _MOST_SAVES), random.random()
        heard = launch(run, saves, share * seconds, expected, go_back)
        step, seconds = heard[-1]["step"], heard[-1].get("seconds", seconds)
        before = expected if heard[-1].get("back") else set()  # nothing changes until it saves
        expected = before | {step, (step or 0) + 1}  # which was killed after its manifest
        print(json.dumps(heard[0] | {"saves": len(heard) - 1}), flush=True)


if __name__ == "__main__":
    main()
