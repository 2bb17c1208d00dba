"""A run's saved replay is read from the files of Reverb itself, and sampled."""

import pathlib
import shutil
import socket

import numpy as np
import pytest
import reverb

from agents.actor import RecurrentActor
from agents.environment_loop import VectorEnvironmentLoop
from analysis import saved_replay
from environments import suites
from replay import tables
from replay.structures import UNKNOWN, Nest, PriorityInput, Step
from replay.writer import SequenceWriter
from run_folder import building, checkpoints, disk, saver
from run_folder.checkpoints import CheckpointError
from run_folder.settings import Settings
from tests.run_folder import saved_runs
from tests.run_folder.saving import save_all

ROWS, SAVED_AT = 200, 1_000


class _Aging:
    """Writes each row as acted by parameters one update newer; those of the first 20 are unknown.

    A catch episode is one item, so each item has another learner step.
    """

    def __init__(self, writer: SequenceWriter) -> None:
        self._writer = writer
        self._row = 0

    def append(
        self, step: Step, *, core_state: Nest, values: dict[str, np.ndarray], learner_step: int
    ) -> None:
        del learner_step
        made_at = self._row if self._row >= 20 else UNKNOWN
        self._writer.append(step, core_state=core_state, values=values, learner_step=made_at)
        self._row += 1


class _Rising:
    """First priorities 1, 2, 3, ..."""

    def __init__(self) -> None:
        self.given = 0

    def __call__(self, items: PriorityInput) -> np.ndarray:
        priorities = np.arange(items.mask.shape[1]) + self.given + 1.0
        self.given += len(priorities)
        return priorities


def _fill(run: Settings, client: reverb.Client) -> int:
    """Plays catch in one environment; returns how many items that made."""
    (agent,) = building.make_agents(run).values()
    network, priorities = agent.make_network(building.environment_spec(run)), _Rising()
    writer = SequenceWriter(
        client,
        agent.tables,
        blocks=tables.block_layout(agent.tables),
        actors=np.array([0]),
        tasks=np.array([0]),
        agent=0,
        initial_priorities={agent.name: priorities} if agent.initial_priority else {},
    )
    actor = RecurrentActor(
        agent.make_policy(network, np.array([0]), 1, 0),
        network.initial_state(1),
        num_environments=1,
        frame_stack=agent.frame_stack,
        writer=_Aging(writer),
    )
    loop = VectorEnvironmentLoop(suites.make("catch", 1, seed=0), actor, ["catch"])
    for _ in range(ROWS):
        loop.step()
    writer.flush()
    writer.close()
    return int(client.server_info()[agent.name].current_size)


def _save(folder: pathlib.Path, agent: str = "r2d2", shards: int = 1) -> tuple[Settings, list[int]]:
    """A run with a replay, and how many items its shards hold."""
    run = saved_runs.save(folder, agent, steps=(), num_replay_shards=shards)
    servers = [
        reverb.Server(
            building.tables_of_shard(run, shard),
            checkpointer=saver.replay_checkpointer(folder / "checkpoints", None, shard),
        )
        for shard in range(shards)
    ]
    clients = [server.localhost_client() for server in servers]
    items = [_fill(run, client) for client in clients]
    writes = saver.Saver(folder / "checkpoints", agent, _touch, clients, 1, None)
    save_all(writes, SAVED_AT, saved_runs.COUNTS)
    for server in servers:
        server.stop()
    return run, items


def _touch(prefix: str) -> str:
    for part in ("index", "data"):
        pathlib.Path(f"{prefix}.{part}").write_text("")
    return prefix


@pytest.mark.parametrize("shards", [1, 2])
def test_items_are_sampled_by_priority_although_the_learner_would_have_to_wait(
    tmp_path: pathlib.Path, shards: int
) -> None:
    run, (items, *_) = _save(tmp_path / "run", shards=shards)
    assert items < run.configs["r2d2"].min_replay_size / shards
    before = sorted(tmp_path.rglob("*"))
    sampled = saved_replay.sample(run, "r2d2", 1_500)
    assert sampled is not None
    assert sorted(tmp_path.rglob("*")) == before

    powers = np.arange(1.0, items + 1) ** run.configs["r2d2"].priority_exponent
    # An episode has nine steps and a row that only resets; the first two items' steps are unknown.
    expected = {SAVED_AT - 10 * i: powers[i] / powers.sum() / shards for i in range(2, items)}
    for lag, probability in zip(*sampled, strict=True):
        assert probability == pytest.approx(expected[lag], rel=1e-6)
    # The oldest of 17 is drawn 25 times on average: that it is not has a chance of 10^-11.
    assert set(sampled.lag) == set(expected)
    assert 1_500 * 0.9 < len(sampled.lag) <= 1_500


def test_nobody_else_reaches_the_server(tmp_path: pathlib.Path) -> None:
    run, _ = _save(tmp_path / "run")
    replay = next((tmp_path / "run" / "checkpoints" / "replay").iterdir())
    with saved_replay.served(run, replay, 0) as client:
        host, _, port = client.server_address.rpartition(":")
        with pytest.raises(TimeoutError):
            socket.create_connection((host, int(port)), timeout=0.5)


def test_what_a_killed_process_left_is_removed_and_what_another_works_in_is_not(
    tmp_path: pathlib.Path,
) -> None:
    run, _ = _save(tmp_path / "run")
    left, used = (run.path / f"{saved_replay._PREFIX}{name}" for name in ("left", "used"))
    for folder in (left, used):
        (folder / "copy").mkdir(parents=True)
    replay = next((run.path / "checkpoints" / "replay").iterdir())
    with disk.locked(used), saved_replay.served(run, replay, 0):
        assert (left.exists(), used.exists()) == (False, True)
        assert len(list(run.path.glob(f"{saved_replay._PREFIX}*"))) == 2  # with its own
    assert list(run.path.glob(f"{saved_replay._PREFIX}*")) == [used]


def test_a_queue_gives_each_item_once(tmp_path: pathlib.Path) -> None:
    run, (items,) = _save(tmp_path / "run", "impala")
    sampled = saved_replay.sample(run, "impala", 600)
    assert sampled is not None
    length = run.configs["impala"].length
    made_at = [length * i for i in range(items)]
    assert sampled.lag.tolist() == [SAVED_AT - at for at in made_at if at >= 20]


def test_without_a_saved_replay_there_is_nothing(tmp_path: pathlib.Path) -> None:
    for name, steps in (("none", ()), ("learner", (3, 7))):
        run = saved_runs.save(tmp_path / name, steps=steps)
        assert saved_replay.sample(run, "r2d2", 9) is None
        assert saved_replay.stored(run.folder.checkpoints) == {}


def test_a_replay_that_a_running_learner_removes_is_an_error(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, _ = _save(tmp_path / "run")
    manifest = checkpoints.read(run.path / "checkpoints")
    shutil.rmtree(run.path / "checkpoints" / "replay")
    monkeypatch.setattr(checkpoints, "read", lambda folder: manifest)
    with pytest.raises(CheckpointError, match=r"The saved replay .* cannot be read"):
        saved_replay.sample(run, "r2d2", 9)


@pytest.mark.parametrize("shards", [1, 2])
def test_every_item_of_every_shard_is_read(tmp_path: pathlib.Path, shards: int) -> None:
    run, items = _save(tmp_path / "run", shards=shards)
    found = saved_replay.stored(run.folder.checkpoints)["r2d2"]
    given = [priority for count in items for priority in range(1, count + 1)]
    assert sorted(found.priority) == sorted(given)
    assert set(found.times_sampled) == {0}
    # While it is reported the run goes on, and saves again.
    file = next(run.folder.checkpoints.rglob("items.tfrecord"))
    file.write_bytes(b"cut short")
    assert saved_replay.stored(run.folder.checkpoints) == {}
    shutil.rmtree(run.folder.checkpoints / "replay")
    assert saved_replay.stored(run.folder.checkpoints) == {}
