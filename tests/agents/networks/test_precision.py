"""Every agent in bfloat16: its arithmetic is another, its variables and what it learns are not."""

import contextlib
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import pytest
import tensorflow as tf
import tree

from agents.compilation import is_refused
from agents.contract import Agent, Update
from agents.impala import agent as impala
from agents.popart import agent as popart
from agents.stac import agent as stac
from r2d2 import agent as r2d2
from replay.structures import Batch
from tests.agents.impala import batches as impala_batches
from tests.agents.popart import batches as popart_batches
from tests.agents.stac import batches as stac_batches
from tests.batches import environment_spec, random_batch
from tests.eager import eagerly
from tests.images import IMAGE, with_images
from tests.instructions import spec_with_words, with_words
from tests.r2d2 import batches as r2d2_batches
from tests.tensor_ops.vectors import lanes
from tests.updates import parameters_of, same


def make_agent(name: str, **changes: Any) -> Agent:
    if name == "r2d2":
        return r2d2.make(r2d2_batches.small_config(**changes))
    if name == "impala":
        return impala.make(impala_batches.small_config(**changes))
    if name == "stac":
        return stac.make(stac_batches.small_config(**changes))
    return popart.make(popart_batches.small_config(**changes))


def make_batch(name: str, config: Any) -> Batch:
    """With padding and ends of episodes, as the agent would sample it."""
    if name == "r2d2":
        return random_batch(config, **r2d2_batches.ITEMS)
    if name in ("impala", "stac"):
        return impala_batches.with_ends(random_batch(config), impala_batches.ENDS)
    return popart_batches.batch_of_tasks(config)


SPECS = {
    "vectors": environment_spec(),
    "images": environment_spec(IMAGE, np.uint8),
    "words": spec_with_words(),
}


class Made(NamedTuple):
    """An update of new parameters, and a batch for it."""

    agent: Agent
    update: Update
    batch: Batch


def make(
    name: str, observations: str, lstm_size: int, precision: str, torso: str = "shallow"
) -> Made:
    torso = "mlp" if observations == "vectors" else torso
    agent = make_agent(name, lstm_size=lstm_size, torso=torso, precision=precision)
    tf.random.set_seed(0)
    update = agent.make_update(SPECS[observations])
    batch = make_batch(name, agent.config)
    if observations == "images":
        batch = with_images(batch)
    if observations == "words":
        batch = with_words(batch)
    return Made(agent, update, batch)


def make_both(name: str, observations: str, lstm_size: int) -> tuple[Made, Made]:
    """In float32 and in bfloat16, with the same parameters."""
    exact, rounded = (
        make(name, observations, lstm_size, precision) for precision in ("float32", "bfloat16")
    )
    assert same(parameters_of(exact.update), parameters_of(rounded.update))
    return exact, rounded


def _distance(x: Any, y: Any) -> float:
    """Between two structures, in terms of the second one's size."""
    x, y = (np.concatenate([np.ravel(leaf) for leaf in tree.flatten(z)]) for z in (x, y))
    return float(np.linalg.norm(x - y) / np.linalg.norm(y))


@pytest.mark.parametrize(
    ("name", "observations", "lstm_size"),
    [("r2d2", "images", 6), ("impala", "words", 6), ("stac", "vectors", 0)],
)  # PopArt's network is IMPALA's
def test_outputs_and_states_are_float32_and_near(
    name: str, observations: str, lstm_size: int
) -> None:
    def unrolled(made: Made) -> Any:
        batch, network = made.batch, made.update.network
        return network.unroll(batch.inputs, batch.core_state, batch.reset, batch.valid)

    def stepped(made: Made) -> Any:
        row = tree.map_structure(lambda x: x[1], made.batch.inputs)
        return made.update.network.step(row, made.batch.core_state)

    exact, rounded = make_both(name, observations, lstm_size)
    assert all(v.dtype == tf.float32 for v in rounded.update.network.variables)
    for results in (unrolled, stepped):
        expected, actual = results(exact), results(rounded)
        assert all(x.dtype == tf.float32 for x in tree.flatten(actual))
        assert all(np.isfinite(x).all() for x in tree.flatten(actual))
        assert 1e-5 < _distance(actual, expected) < 0.02


@pytest.mark.parametrize(
    ("name", "observations", "lstm_size"),
    [("r2d2", "images", 6), ("popart", "words", 6), ("stac", "vectors", 0)],
)
@eagerly()
def test_an_update_is_near(name: str, observations: str, lstm_size: int) -> None:
    exact, rounded = make_both(name, observations, lstm_size)
    before = parameters_of(exact.update)
    (expected, expected_metrics), (priorities, metrics) = (
        made.update(made.batch) for made in (exact, rounded)
    )
    if priorities is not None and expected is not None:
        assert priorities.dtype == tf.float32
        np.testing.assert_allclose(priorities, expected, rtol=0.02)
        assert np.abs(priorities - expected).max() > 1e-6
    _assert_metrics_are_near(metrics, expected_metrics)
    moved, expected_moves = (
        [y - x for x, y in zip(before, parameters_of(made.update), strict=True)]
        for made in (rounded, exact)
    )
    assert all(np.isfinite(x).all() for x in moved)
    assert 1e-5 < _distance(moved, expected_moves) < 0.1


def _assert_metrics_are_near(
    actual: Mapping[str, tf.Tensor], expected: Mapping[str, tf.Tensor]
) -> None:
    assert actual["loss"].dtype == tf.float32
    for name, value in expected.items():
        np.testing.assert_allclose(actual[name], value, rtol=0.03, atol=0.02, err_msg=name)


@pytest.mark.parametrize(
    ("name", "observations", "lstm_size"),
    [("r2d2", "images", 6), ("popart", "words", 0), ("stac", "vectors", 0)],
)
def test_an_update_compiled_as_a_whole_equals_one_that_is_not(
    name: str, observations: str, lstm_size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain, compiled = (make(name, observations, lstm_size, "float32") for _ in range(2))
    with eagerly():
        expected = _updated(plain)
    monkeypatch.setattr(tf.config, "list_logical_devices", lambda kind: ["GPU:0"])
    actual = _updated(compiled)
    assert not is_refused(compiled.update)
    _assert_equal(actual, expected)


@pytest.mark.parametrize(
    ("name", "torso", "traced"),
    [("impala", "resnet", False), ("r2d2", "shallow", True), ("stac", "strided", False)],
)
def test_an_update_by_loops_equals_one_by_operations(name: str, torso: str, traced: bool) -> None:
    """Convolutions, pools and the recurrence, with all that is learned of them."""
    by_loops, by_operations = (make(name, "images", 16, "float32", torso) for _ in range(2))
    with lanes(16), contextlib.nullcontext() if traced else eagerly():
        actual = _updated(by_loops)
    with lanes(0), eagerly():
        expected = _updated(by_operations)
    _assert_equal(actual, expected)


class Updated(NamedTuple):
    """What an update came to."""

    priorities: tf.Tensor | None
    metrics: Mapping[str, tf.Tensor]
    parameters: list[np.ndarray]


def _updated(made: Made) -> Updated:
    priorities, metrics = made.update(made.batch)
    return Updated(priorities, metrics, parameters_of(made.update))


def _assert_equal(actual: Updated, expected: Updated) -> None:
    if actual.priorities is not None and expected.priorities is not None:
        np.testing.assert_allclose(actual.priorities, expected.priorities, rtol=1e-4)
    for name, value in expected.metrics.items():
        np.testing.assert_allclose(actual.metrics[name], value, rtol=1e-4, atol=1e-5, err_msg=name)
    for x, y in zip(actual.parameters, expected.parameters, strict=True):
        np.testing.assert_allclose(x, y, atol=1e-5)
