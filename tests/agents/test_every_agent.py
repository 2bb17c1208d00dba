"""What holds for every agent: eager, traced, compiled and in bfloat16; saved; no field in vain."""

import contextlib
import dataclasses
import pathlib
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
from replay.structures import Batch, PriorityInput
from tests.agents.impala import batches as impala_batches
from tests.agents.popart import batches as popart_batches
from tests.agents.stac import batches as stac_batches
from tests.batches import environment_spec, random_batch
from tests.eager import eagerly
from tests.observations import IMAGE, spec_with_words, with_images, with_words
from tests.r2d2 import batches as r2d2_batches
from tests.tensor_ops.vectors import lanes
from tests.updates import parameters_of, same, watched

MAKES: dict[str, Any] = dict(r2d2=r2d2.make, impala=impala.make, popart=popart.make, stac=stac.make)
BATCHES: dict[str, Any] = dict(
    r2d2=r2d2_batches, impala=impala_batches, popart=popart_batches, stac=stac_batches
)


def make_agent(name: str, **changes: Any) -> Agent:
    made: Agent = MAKES[name](BATCHES[name].small_config(**changes))
    return made


def make_batch(name: str, config: Any, seed: int = 0) -> Batch:
    """With padding and ends of episodes, as the agent would sample it."""
    if name == "r2d2":
        return random_batch(config, seed, **r2d2_batches.ITEMS)
    if name in ("impala", "stac"):
        return impala_batches.with_ends(random_batch(config, seed), impala_batches.ENDS)
    return popart_batches.batch_of_tasks(config, seed)


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


NAMES = pytest.mark.parametrize("name", ["r2d2", "impala", "popart", "stac"])


@NAMES
def test_an_eager_update_equals_a_traced_one(name: str) -> None:
    traced, eager = (make(name, "vectors", 6, "float32") for _ in range(2))
    actual = _updated(traced)
    with eagerly():
        expected = _updated(eager)
    _assert_equal(actual, expected)


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("r2d2", dict(target_update_period=4)),  # which copies on the way
        ("impala", dict(policy_lag=2)),
        ("popart", {}),
        ("stac", dict(policy_lag=2, num_heads=3)),
    ],
)
def test_a_checkpoint_reproduces_the_next_updates_bit_for_bit(
    tmp_path: pathlib.Path, name: str, changes: dict[str, Any]
) -> None:
    agent = make_agent(name, **changes)

    def new(seed: int) -> Any:
        tf.random.set_seed(seed)
        return agent.make_update(SPECS["vectors"])

    def batch(seed: int) -> Batch:
        return make_batch(name, agent.config, seed)

    update, restored = new(0), new(5)
    for step in range(3):
        update(batch(step))
    path = tf.train.Checkpoint(update=update).write(str(tmp_path / "update"))
    tf.train.Checkpoint(update=restored).read(path).assert_consumed()
    assert int(restored.step) == 3
    for step in range(3, 6):
        for each in (update, restored):
            each(batch(step))
        for own in ("variables", "network"):
            both = [getattr(each, own) for each in (update, restored)]
            values = [[v.numpy() for v in getattr(x, "variables", x)] for x in both]
            assert same(*values)


@NAMES
def test_every_field_of_a_config_is_read_by_something_that_is_made_of_it(name: str) -> None:
    changes = dict(replay_fraction=0.5) if name in ("impala", "popart") else {}
    config, read = watched(make_agent(name, **changes).config)
    agent = MAKES[name](config)
    update = agent.make_update(SPECS["vectors"])
    update(make_batch(name, config))
    agent.make_policy(update.network, np.arange(2), 2, 0)
    agent.make_evaluation_policy(update.network, 0)
    if agent.initial_priority is not None:
        rows = np.ones((config.length + 1, 2), np.float32)
        values = {"q_taken": rows, "q_max": rows}
        agent.initial_priority(PriorityInput(values, rows[1:], rows[1:], rows > 0, rows[1:]))
    unread = {field.name for field in dataclasses.fields(config)} - read
    # STAC has two as they stand only, and here no replay.
    stand = {"correction", "pixel_control_cost", "replay_size"} if name == "stac" else set[str]()
    assert unread == stand


@pytest.mark.parametrize(
    ("name", "torso", "shape"),
    [
        ("r2d2", "dqn", (84, 84)),
        ("r2d2", "mlp", (10, 5)),
        ("impala", "resnet", (72, 96, 3)),
        ("stac", "shallow", (84, 84)),
    ],
)
def test_networks_have_their_variables_at_once(
    name: str, torso: str, shape: tuple[int, ...]
) -> None:
    agent = make_agent(name, torso=torso, frame_stack=2)
    spec = environment_spec(shape, np.uint8)
    network, update = agent.make_network(spec), agent.make_update(spec)
    assert len(network.variables) > 0
    for acting, learning in zip(network.variables, update.network.variables, strict=True):
        assert (acting.shape, acting.name) == (learning.shape, learning.name)
