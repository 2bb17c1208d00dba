"""What a learner's node does before its first batch, when all is torn down, after a NaN."""

import contextlib
import dataclasses
import os
import pathlib
import threading
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
import tree

from agents.contract import Agent
from agents.finite import MUST_BE_FINITE, NotFiniteError
from agents.learner import Learner
from launch.graph import learner_node, process
from launch.graph.learner_node import LearnerNode, zeros
from replay import dataset, tables
from run_folder import catalogue, checkpoints, settings
from run_folder.building import core_state_spec
from tests.batches import environment_spec, random_batch
from tests.run_folder.saving import COUNTS, Place

SMALL: dict[str, Any] = dict(
    torso="mlp", hidden_sizes=(8,), frame_stack=1, burn_in=0, length=4, batch_size=4
)


def _agent(name: str) -> Agent:
    config = catalogue.config(name, "catch")
    own = {"lstm_size": min(config.lstm_size, 8)}
    if not hasattr(config, "queue_size"):
        own |= {"period": 4, "head_size": 8, "target_update_period": 1}
    return catalogue.entry(name).make(dataclasses.replace(config, **SMALL, **own), name)


def _zeros(agent: Agent) -> Any:
    batches = dataset.make_dataset(
        ["localhost:1"],
        agent.tables,
        environment_spec(),
        core_state_spec(agent, environment_spec()),
        tables.block_length(agent.tables),
        agent.batch_sizes,
    )
    return zeros(batches.element_spec)


@pytest.mark.parametrize("name", catalogue.AGENTS)
def test_a_warm_up_leaves_no_trace_in_what_is_learned(name: str) -> None:
    agent = _agent(name)
    nothing, batch = _zeros(agent), random_batch(agent.config)
    found = []
    for warm in (False, True):
        tf.random.set_seed(0)
        update = agent.make_update(environment_spec())
        metrics: list[Any] = []
        learner = Learner(update, iter([batch, batch]), on_metrics=metrics.append)
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


@pytest.mark.parametrize("name", catalogue.AGENTS)
def test_an_update_on_zeros_would_change_the_learner(name: str) -> None:
    """Or there were nothing that the warm-up had to undo."""
    agent = _agent(name)
    update = agent.make_update(environment_spec())
    before = [variable.numpy() for variable in update.variables]
    update(_zeros(agent))
    after = [variable.numpy() for variable in update.variables]
    assert any((x != y).any() for x, y in zip(before, after, strict=True))


class TornDown:
    """A node that has learned, in whose process `_exit` is recorded."""

    def __init__(self, folder: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.place = Place(folder)
        self.codes: list[int] = []
        self.stop = threading.Event()
        monkeypatch.setattr(os, "_exit", self.codes.append)
        self.node = LearnerNode.__new__(LearnerNode)
        self.node._saver = self.place.saver
        self.node._learner = SimpleNamespace(learner_steps=3)  # type: ignore[assignment]
        self.node._counter = SimpleNamespace(get_counts=dict)
        self.node._counts = dict(COUNTS)
        self.node._saving, self.node._over = threading.Lock(), threading.Event()
        self._thread = threading.Thread(target=self.node._save_when_torn_down, args=(self.stop,))
        self._thread.start()

    def join(self) -> None:
        self._thread.join(10)
        assert not self._thread.is_alive()


def test_what_was_learned_is_saved_when_all_is_torn_down(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    torn = TornDown(tmp_path, monkeypatch)
    torn.node._save(with_replay=False)
    torn.node._learner.learner_steps = 5  # type: ignore[misc]
    torn.stop.set()
    torn.join()
    assert torn.codes == [0]
    assert torn.place.saver.last is not None
    assert torn.place.saver.last.learner_step == 5


def test_a_step_is_not_saved_again_while_its_replay_is_written(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second save would be cut short by the end of the process, and leave half a checkpoint."""
    torn = TornDown(tmp_path, monkeypatch)
    begun, gone = threading.Event(), threading.Event()

    def checkpoint() -> str:
        begun.set()
        gone.wait()
        raise RuntimeError("The replay server has ended.")

    monkeypatch.setattr(torn.place.replays[0], "checkpoint", checkpoint)

    def save() -> None:
        with contextlib.suppress(RuntimeError):
            torn.node._save(with_replay=True)

    saving = threading.Thread(target=save)
    saving.start()
    assert begun.wait(10)
    torn.place.learner = "a second save"
    torn.stop.set()
    torn.join()
    assert torn.codes == [0]
    gone.set()
    saving.join()
    assert (tmp_path / "learner-r2d2" / "3.data").read_text() == "weights"


class Coordinator:
    """Stands for the coordinator's node."""

    def report_learner(self, *_: Any) -> bool:
        return False

    def get_counts(self) -> dict[str, float]:
        return dict(actor_steps=1.0, episodes=1.0, walltime=1.0)

    def seconds_to_save(self) -> float:
        return 0.0


@pytest.fixture(params=["impala", "r2d2"])
def node(
    request: pytest.FixtureRequest, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> LearnerNode:
    """A learner's node that is to learn from two batches; a reward of the second is not a number.

    IMPALA has no priorities to give back, so it need not look at each update.
    """
    name = request.param
    agent, stop = _agent(name), threading.Event()
    good = random_batch(agent.config)
    bad = good._replace(reward=good.reward + tf.constant([np.nan] + [0.0] * 3))
    batches = tf.data.Dataset.from_tensors(good).concatenate(tf.data.Dataset.from_tensors(bad))
    monkeypatch.setattr(process, "enter", lambda *_: None)
    lp = SimpleNamespace(stop_event=lambda: stop, wait_for_stop=lambda _: False)
    monkeypatch.setattr(learner_node, "lp", lp)
    monkeypatch.setattr(learner_node, "make_agents", lambda _: {name: agent})
    monkeypatch.setattr(learner_node, "environment_spec", lambda _: environment_spec())
    monkeypatch.setattr(dataset, "make_dataset", lambda *_: batches)
    replay: Any = SimpleNamespace(
        server_address="localhost:1",
        server_info=lambda timeout: {name: SimpleNamespace(current_size=1)},  # takes some time
        mutate_priorities=lambda *_, **__: None,
    )
    given = dict(agent=name, env="catch", run_dir=str(tmp_path), preset="local")
    run = settings.resolve(given | dict(max_learner_steps=2), {})
    return LearnerNode(run, name, None, [replay], Coordinator())


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
    node._learner.step()
    with pytest.raises(SystemExit) as left:
        node._save_when_torn_down(torn_down)
    assert left.value.code == 0
    saved = sorted(tmp_path.rglob("*"))

    with contextlib.suppress(NotFiniteError):
        node._learner.step()
    with pytest.raises(SystemExit) as left:
        node._save_when_torn_down(torn_down)
    assert left.value.code == 1
    assert "NotFiniteError: Update 2 is not finite: loss nan, " in capsys.readouterr().err
    assert sorted(tmp_path.rglob("*")) == saved
    manifest = checkpoints.read(tmp_path / "checkpoints")
    assert manifest is not None
    assert manifest.learner_step == 1
