"""A run that does nothing but save, killed again and again: python -m tests.run_folder.killing

This process imports TensorFlow and Reverb once, and runs no op. Each launch of the run is a fork: a
learner with the project's saver, and the replay's two servers. It goes on from what the one before
has left, checks that it is whole, then learns and saves without a pause until SIGKILL ends it: as
it is about to open, make, rename or remove a file of a save, or a moment after, amid what
TensorFlow and Reverb write there.

Arguments: a folder, how many launches, a seed. Each launch is a line of JSON on standard output.
"""

import contextlib
import functools
import itertools
import json
import os
import pathlib
import random
import signal
import sys
import threading
from collections.abc import Callable
from multiprocessing import Pipe, connection
from types import SimpleNamespace
from typing import Any

import numpy as np
import reverb
import tensorflow as tf

from agents.batches import Fetched
from agents.learner import Learner
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
_OPERATIONS = 40  # of a save, until one has been seen
_MOMENT = 0.01  # seconds: a replay's files, or a learner's, take no longer
_GO_BACK = 0.3  # of the launches go back to a learner that was kept
_TABLE_SIZE = 60


_CHANGES = {"open", "os.link", "os.mkdir", "os.remove", "os.rename", "os.rmdir"}


class Killer:
    """Ends this process amid a save.

    Args:
      saves: so many saves end before the one that is cut short.
      operation: of that save, the one on files that is not done any more.
      seconds: this process goes on for so long after it has come to that operation.
    """

    def __init__(self, saves: int, operation: int, seconds: float) -> None:
        self._saves = saves
        self._operation = operation
        self._seconds = seconds
        self.operations = 0  # of this save
        self._saving = False
        sys.addaudithook(self._see)

    def __enter__(self) -> None:
        self.operations, self._saving = 0, True

    def __exit__(self, *_: object) -> None:
        if self._saves == 0:
            self._kill()  # a save with fewer operations than the one before
        self._saves -= 1
        self._saving = False

    def _see(self, event: str, _: tuple[Any, ...]) -> None:
        if not self._saving or event not in _CHANGES:
            return
        if self._saves == 0 and self.operations == self._operation:
            if self._seconds:
                threading.Timer(self._seconds, self._kill).start()
            else:
                self._kill()
        self.operations += 1

    def _kill(self) -> None:
        os.kill(os.getpid(), signal.SIGKILL)


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
    run: Settings,
    say: connection.Connection,
    expected: set[int | None],
    go_back: int | None,
    killer: Killer,
) -> None:
    """Does all that a launch does, until it is killed.

    Args:
      run: its settings.
      say: tells the parent what it began with, and when a save is done.
      expected: where the launches before can have left the run; None where nothing was saved.
      go_back: where to, of the kept learners, counted from the newest; None goes on.
      killer: ends it.
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
        save = save_all if number % 3 != 1 else saver.Saver.save
        with killer:
            save(writer, learner.learner_steps, counts)
        assert not (unnamed := left(folder)), unnamed
        say.send(dict(event="saved", step=learner.learner_steps, operations=killer.operations))


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
    run: Settings, expected: set[int | None], go_back: int | None, kill: Callable[[], Killer]
) -> list[dict[str, Any]]:
    """Launches the run, until it is killed; what it said."""
    ours, theirs = Pipe(duplex=False)
    learner = fork(lambda: learn(run, theirs, expected, go_back, kill()))
    theirs.close()
    heard = []
    with contextlib.suppress(EOFError):
        while True:
            heard.append(ours.recv())
    code = os.waitstatus_to_exitcode(os.waitpid(learner, 0)[1])
    assert code == -signal.SIGKILL, code  # else what was left could not be gone on from
    return heard


def main() -> None:
    """Launches the run as often as the command line says."""
    folder, launches, seed = pathlib.Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    random.seed(seed)
    run = saved_runs.settings_of(folder, AGENT, "catch", num_replay_shards=SHARDS)
    (folder / "checkpoints").mkdir(parents=True)
    disk.write(folder / "config.json", run.to_json())
    expected: set[int | None] = {None}
    operations = _OPERATIONS
    for _ in range(launches):
        go_back = random.randrange(1, 12) if random.random() < _GO_BACK else None
        saves, operation = random.randint(0, _MOST_SAVES), int(random.random() * operations)
        seconds = random.choice([0.0, random.random() * _MOMENT])
        killer = functools.partial(Killer, saves, operation, seconds)
        heard = launch(run, expected, go_back, killer)
        step, operations = heard[-1]["step"], heard[-1].get("operations", operations)
        before = expected if heard[-1].get("back") else set()  # nothing changes until it saves
        expected = before | {step, (step or 0) + 1}  # which was killed after its manifest
        print(json.dumps(heard[0] | {"saves": len(heard) - 1}), flush=True)


if __name__ == "__main__":
    main()
