"""A learner's node before its first batch, when all is torn down, and after a NaN."""

import contextlib
import dataclasses
import errno
import math
import os
import pathlib
import threading
import time
from collections.abc import Iterator
from concurrent import futures
from types import SimpleNamespace
from typing import Any
from unittest import mock

import numpy as np
import pytest
import tensorflow as tf
import tree
from acme import specs

from agents.batches import Fetched
from agents.contract import Agent
from agents.finite import MUST_BE_FINITE, NotFiniteError
from agents.learner import Learner
from launch.graph import learner_node, learning, process, rejoining
from launch.graph.coordinator import Coordinator
from launch.graph.learner_node import LearnerNode
from launch.graph.learning import zeros
from launch.graph.rejoining import Origin
from replay import dataset, tables
from run_folder import catalogue, checkpoints, log_reader, log_writer
from run_folder.building import core_state_spec
from tests.batches import acts_by_vectors, environment_spec, random_batch, with_actions_of
from tests.patience import PATIENCE
from tests.run_folder import saved_runs
from tests.run_folder.saving import COUNTS, Place, saved_in, table_info

SMALL: dict[str, Any] = dict(
    torso="mlp", hidden_sizes=(8,), frame_stack=1, burn_in=0, length=4, batch_size=4
)


def _agent(name: str) -> Agent:
    config = catalogue.config(name, "catch")
    own = {"lstm_size": min(config.lstm_size, 8)}
    if acts_by_vectors(config):
        own |= {"period": 4, "head_hidden_sizes": (8,)}
    elif not hasattr(config, "queue_size"):
        own |= {"period": 4, "head_size": 8, "target_update_period": 1}
    return catalogue.entry(name).make(dataclasses.replace(config, **SMALL, **own), name)


def zeros_of(agent: Agent, spec: specs.EnvironmentSpec) -> Any:
    """The batch that a learner warms up on."""
    batches = dataset.make_dataset(
        ["localhost:1"],
        agent.tables,
        spec,
        core_state_spec(agent, spec),
        tables.block_layout(agent.tables),
        agent.batch_sizes,
    )
    return zeros(batches.element_spec)


@pytest.mark.parametrize("name", ["r2d2", "r2d2_feedforward", "impala", "popart", "stacx", "rsac"])
def test_a_warm_up_leaves_no_trace_in_what_is_learned(name: str) -> None:
    agent = _agent(name)
    spec = with_actions_of(agent.config, environment_spec())
    nothing, batch = zeros_of(agent, spec), random_batch(agent.config)
    found = []
    for warm in (False, True):
        tf.random.set_seed(0)
        update = agent.make_update(spec)
        metrics: list[Any] = []
        learner = Learner(update, Fetched(iter([batch, batch])), on_metrics=metrics.append)
        before = learner.save()
        if warm:
            learner.warm_up(nothing)
        drawn = tf.random.uniform([4])
        warmed, served = learner.save(), learner.get_variables(["policy"])
        np.testing.assert_equal(warmed, before)
        learner.step()
        first = learner.save()
        learner.step()
        found.append((drawn, served, first, learner.save(), metrics))
        assert set(MUST_BE_FINITE) <= metrics[0].keys()
        # A second graph would mean that the warm-up's batch was not like those to come.
        traces = update.__call__.experimental_get_tracing_count()  # type: ignore[attr-defined]
        assert traces == 1
        assert any((first[key] != before[key]).any() for key in before)
    tree.map_structure(np.testing.assert_array_equal, found[1], found[0])


def test_the_share_of_waiting_is_of_the_time_since_it_was_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    times = iter([20.0, 24.0])
    monkeypatch.setattr(learner_node, "time", SimpleNamespace(monotonic=lambda: next(times)))
    node: Any = LearnerNode.__new__(LearnerNode)
    node._learner, node._waited = SimpleNamespace(waiting=8.0), (10.0, 3.0)
    assert node._share_of_waiting() == 0.5
    node._learner.waiting = 9.0
    assert node._share_of_waiting() == 0.25


@pytest.mark.parametrize(
    ("minutes", "saved_at"), [(10.0, [60, 660, 1_260]), (0.5, [*range(30, 1_300, 30)])]
)
def test_the_first_save_comes_soon_whatever_the_interval(
    minutes: float, saved_at: list[float], tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or a run that dies each time before it would begin anew for ever."""
    now, saves = 0.0, list[float]()
    monkeypatch.setattr(learner_node, "time", SimpleNamespace(monotonic=lambda: now))

    def seconds(_: float) -> Iterator[None]:
        nonlocal now
        while now < 1_299:
            now += 1
            yield

    node: Any = LearnerNode.__new__(LearnerNode)
    node._name = "r2d2"
    node._settings = SimpleNamespace(
        checkpoint_minutes=minutes, max_learner_steps=None, limits={}, path=tmp_path
    )
    node._report = lambda: (False, {})
    node._every = seconds
    node._save_and_go_on = lambda: saves.append(now)
    node._learn()
    assert saves == saved_at


class TornDown:
    """A node that has learned, in whose process `_exit` is recorded."""

    def __init__(self, folder: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.place = Place(folder)
        self.codes: list[int] = []
        self.stop = threading.Event()
        monkeypatch.setattr(process, "GRACE_SECONDS", 0.1)
        monkeypatch.setattr(os, "_exit", self.codes.append)
        self.node = LearnerNode.__new__(LearnerNode)
        self.node._saver = self.place.saver
        self.node._stop = self.stop
        self.node._learner = SimpleNamespace(learner_steps=3)  # type: ignore[assignment]
        self.node._counter = SimpleNamespace(get_counts=dict)
        self.node._counts = dict(COUNTS)
        self.node._saving, self.node._over = threading.Lock(), threading.Event()
        self.node._replay_save = threading.Thread()
        self.node._settings = SimpleNamespace(checkpoint_minutes=5)  # type: ignore[assignment]
        self.notices: list[str] = []
        self.seconds_left = math.inf
        self.saved: list[str] = []
        self.node._name = "r2d2"
        self.node._coordinator = SimpleNamespace(
            notice=self.notices.append,
            seconds_to_save=lambda: self.seconds_left,
            report_saved=self.saved.append,
        )

    def tear_down(self) -> None:
        self.stop.set()
        self.node._save_when_torn_down()


@pytest.fixture
def torn(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> TornDown:
    return TornDown(tmp_path, monkeypatch)


@pytest.mark.parametrize(("learned", "saved"), [(5, 5), (0, None)])
def test_what_was_learned_is_saved_when_all_is_torn_down(
    torn: TornDown, learned: int, saved: int | None
) -> None:
    torn.node._learner.learner_steps = learned  # type: ignore[misc]
    torn.tear_down()
    assert torn.codes == [process.TERMINATED]
    assert (torn.place.saver.last and torn.place.saver.last.learner_step) == saved


def test_a_step_is_not_saved_again_while_its_replay_is_written(
    torn: TornDown, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second save would be cut short by the end of the process, and leave half a checkpoint."""
    writing = Writing(torn, monkeypatch)
    torn.place.learner = "a second save"
    torn.tear_down()
    assert torn.codes == [process.TERMINATED]
    writing.goes_on.set()
    torn.node._replay_save.join(PATIENCE)
    assert (tmp_path / "learner-r2d2" / "3.data").read_text() == "weights"


class Writing:
    """A periodic save that has begun to write the replay, whose server is held up."""

    def __init__(self, torn: TornDown, monkeypatch: pytest.MonkeyPatch) -> None:
        begun, self.goes_on = threading.Event(), threading.Event()
        self.count = 0
        write = torn.place.replays[0].checkpoint

        def checkpoint() -> str:
            self.count += 1
            begun.set()
            assert self.goes_on.wait(PATIENCE)
            return write()

        monkeypatch.setattr(torn.place.replays[0], "checkpoint", checkpoint)
        torn.node._save_and_go_on()
        assert begun.wait(PATIENCE)


def test_the_learner_goes_on_while_a_replay_is_written(
    torn: TornDown, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writing = Writing(torn, monkeypatch)
    torn.node._learner.learner_steps = 4  # type: ignore[misc]
    torn.node._save_and_go_on()
    saved = torn.place.saver.last
    assert saved is not None
    assert (saved.learner_step, saved.replay) == (4, None)
    writing.goes_on.set()
    torn.node._replay_save.join(PATIENCE)
    saved = saved_in(tmp_path)
    assert saved.learner_step == 4  # the newest of both
    assert saved.replay is not None
    assert writing.count == 1  # not a second one beside it
    assert not torn.notices


@pytest.mark.parametrize(("seconds_left", "count"), [(math.inf, 2), (PATIENCE, 2), (-1.0, 1)])
def test_the_end_waits_for_a_replay_that_is_being_written_while_it_may(
    torn: TornDown, monkeypatch: pytest.MonkeyPatch, seconds_left: float, count: int
) -> None:
    torn.seconds_left = seconds_left
    writing = Writing(torn, monkeypatch)
    threading.Timer(0.2, writing.goes_on.set).start()
    torn.node._save_last()
    assert writing.count == count
    assert torn.saved == ["r2d2"]
    torn.node._replay_save.join(PATIENCE)


def test_a_save_that_fails_is_told_and_made_again(torn: TornDown, tmp_path: pathlib.Path) -> None:
    full = OSError(errno.ENOSPC, "No space left on device")
    for part, name in ((torn.place, "learner"), (torn.place.replays[1], "fails_with")):
        before = getattr(part, name)
        setattr(part, name, full)
        torn.node._save_and_go_on()
        if torn.node._replay_save.ident:  # it was begun
            torn.node._replay_save.join(PATIENCE)
        setattr(part, name, before)
    said = "could not be saved: No space left on device. The last whole one is kept. "
    next_one = "The next attempt is in 5 minutes."
    assert torn.notices == [
        f"The learner at update 3 {said}{next_one}",
        f"The replay {said}{next_one}",
    ]
    torn.node._save_and_go_on()
    torn.node._replay_save.join(PATIENCE)
    assert saved_in(tmp_path).replay is not None


def _make_node(
    name: str, run_dir: pathlib.Path, batches: tf.data.Dataset, monkeypatch: pytest.MonkeyPatch
) -> LearnerNode:
    """A small agent's learner's node, in no program, that is to learn from some batches."""
    monkeypatch.setattr(process, "enter", lambda *_: None)
    stop = threading.Event()
    monkeypatch.setattr(process, "stop_event", lambda: stop)
    monkeypatch.setattr(learning, "make_agents", lambda _: {name: _agent(name)})
    monkeypatch.setattr(learning, "environment_spec", lambda _: environment_spec())
    monkeypatch.setattr(dataset, "make_dataset", lambda *_: batches)
    replay: Any = SimpleNamespace(
        server_address="localhost:1",
        server_info=lambda timeout: {name: table_info(1)},  # takes some time
        mutate_priorities=lambda *_, **__: None,
    )
    coordinator = mock.create_autospec(Coordinator, instance=True)
    coordinator.report_learner.return_value = False
    coordinator.get_counts.return_value = dict(actor_steps=1.0, episodes=1.0, walltime=1.0)
    coordinator.seconds_to_save.return_value = 0.0
    run = saved_runs.resolve(name, run_dir=str(run_dir), max_learner_steps=2)
    return LearnerNode(run, name, Origin({}, {}), [replay], coordinator)


@pytest.fixture(params=["impala", "r2d2"])
def node(
    request: pytest.FixtureRequest, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> LearnerNode:
    """A learner's node that is to learn from two batches; a reward of the second is not a number.

    IMPALA has no priorities to give back, so it need not look at each update.
    """
    good = random_batch(_agent(request.param).config)
    bad = good._replace(reward=good.reward + tf.constant([np.nan] + [0.0] * 3))
    batches = tf.data.Dataset.from_tensors(good).concatenate(tf.data.Dataset.from_tensors(bad))
    return _make_node(request.param, tmp_path, batches, monkeypatch)


def test_an_update_that_is_not_finite_is_not_the_last_one_saved(
    node: LearnerNode, tmp_path: pathlib.Path
) -> None:
    with pytest.raises(NotFiniteError, match=r"^Update 2 is not finite: loss nan, "):
        node.run()
    assert checkpoints.read(tmp_path / "checkpoints") is None


def test_what_tears_the_program_down_cannot_save_one_either(
    node: LearnerNode,
    tmp_path: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def leave(code: int) -> None:
        raise SystemExit(code)

    monkeypatch.setattr(os, "_exit", leave)
    torn_down = threading.Event()
    torn_down.set()
    node._stop = torn_down
    node._learner.step()
    with pytest.raises(SystemExit) as left:
        node._save_when_torn_down()
    assert left.value.code == process.TERMINATED
    saved = sorted(tmp_path.rglob("*"))

    with contextlib.suppress(NotFiniteError):
        node._learner.step()
    with pytest.raises(SystemExit) as left:
        node._save_when_torn_down()
    assert left.value.code == 1
    assert "NotFiniteError: Update 2 is not finite: loss nan, " in capsys.readouterr().err
    assert sorted(tmp_path.rglob("*")) == saved
    assert saved_in(tmp_path / "checkpoints").learner_step == 1


@pytest.mark.parametrize("name", ["impala", "r2d2"])
def test_one_that_is_started_again_goes_on_from_its_checkpoint(
    name: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rejoining, "_rejoins", False)
    batches = tf.data.Dataset.from_tensors(random_batch(_agent(name).config)).repeat()
    node = _make_node(name, tmp_path, batches, monkeypatch)
    logger = log_writer.make_logger(tmp_path, f"learner-{name}")
    saved: Any = None
    for step in range(1, 5):
        node._learner.step()
        logger.write(dict(learner_steps=step, actor_steps=100.0, walltime=1.0, loss=0.0))
        if step == 2:
            node._save()
            saved, trained = node._learner.save(), node._trained_steps()
    logger.close()
    assert trained > 0

    monkeypatch.setattr(rejoining, "_rejoins", True)
    node = _make_node(name, tmp_path, batches, monkeypatch)
    assert node._learner.learner_steps == 2
    tree.map_structure(
        np.testing.assert_array_equal, [*node._learner.save().values()], [*saved.values()]
    )
    assert node._trained_steps() == trained
    assert node._saver.last == checkpoints.read(tmp_path / "checkpoints")
    log = log_reader.read(tmp_path / "logs" / f"learner-{name}.csv")
    assert log["learner_steps"].tolist() == [1, 2]


def test_one_that_has_ended_says_so_until_the_run_has(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "REPORT_SECONDS", 0.01)
    batches = tf.data.Dataset.from_tensors(random_batch(_agent("impala").config)).repeat()
    node = _make_node("impala", tmp_path, batches, monkeypatch)
    stop = process.stop_event()
    heard: Any = node._coordinator.report_saved

    def hear() -> None:
        while heard.call_count < 3:
            time.sleep(0.01)
        stop.set()

    threading.Thread(target=hear, daemon=True).start()
    node.run()
    assert {call.args for call in heard.call_args_list} == {("impala",)}


def test_learners_of_one_process_are_made_one_after_another(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """TensorFlow's seed is the process's: of two at a time one would draw the other's numbers."""
    making, alone = threading.Lock(), list[bool]()

    def make(*_: Any) -> Any:
        is_alone = making.acquire(blocking=False)
        alone.append(is_alone)
        time.sleep(0.1)  # in which another would come
        if is_alone:
            making.release()
        learner = SimpleNamespace(waiting=0.0, write_checkpoint=None)
        return SimpleNamespace(learner=learner, item_bytes=1)

    monkeypatch.setattr(process, "enter", lambda *_: None)
    monkeypatch.setattr(learning, "make_learning", make)
    names = ("r2d2", "impala")
    run = saved_runs.resolve(",".join(names), run_dir=str(tmp_path), colocate_learners=True)

    def make_node(name: str) -> LearnerNode:
        return LearnerNode(run, name, Origin({}, {}), [], None)

    with futures.ThreadPoolExecutor(len(names)) as pool:
        nodes = list(pool.map(make_node, names))
    assert [node._name for node in nodes] == [*names]
    assert alone == [True, True]
