"""Every agent: eager, traced, compiled, in bfloat16; saved; blind to padding; no field in vain."""

import collections
import contextlib
import dataclasses
import pathlib
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import pytest
import tensorflow as tf
import tree
from acme import specs

from agents.compilation import is_refused, policy_function
from agents.contract import Update
from replay.structures import Batch, PriorityInput
from tests.batches import (
    NUM_ACTIONS,
    environment_spec,
    inputs_after,
    random_batch,
    random_inputs,
    with_actions_of,
)
from tests.eager import eagerly
from tests.observations import IMAGE, spec_with_words, with_images, with_words
from tests.small_agents import NAMES, make_agent, make_batch, make_update, small_config
from tests.tensor_ops.vectors import lanes
from tests.updates import parameters_of, same, watched

SPECS = {
    "vectors": environment_spec(),
    "images": environment_spec(IMAGE, np.uint8),
    "words": spec_with_words(),
}


class Made(NamedTuple):
    """An update of new parameters, and a batch for it."""

    update: Update
    batch: Batch


def make(
    name: str,
    observations: str,
    lstm_size: int,
    precision: str,
    torso: str = "shallow",
    **changes: Any,
) -> Made:
    torso = "mlp" if observations == "vectors" else torso
    config = small_config(name, lstm_size=lstm_size, torso=torso, precision=precision, **changes)
    batch = make_batch(config)
    if observations == "images":
        batch = with_images(batch)
    if observations == "words":
        batch = with_words(batch)
    return Made(make_update(config, spec=SPECS[observations]), batch)


def make_both(name: str, observations: str, lstm_size: int, **changes: Any) -> tuple[Made, Made]:
    """Updates in float32 and in bfloat16, with the same parameters."""
    exact, rounded = (
        make(name, observations, lstm_size, precision, **changes)
        for precision in ("float32", "bfloat16")
    )
    assert same(parameters_of(exact.update), parameters_of(rounded.update))
    return exact, rounded


def _distance(x: Any, y: Any) -> float:
    """The distance of two structures, relative to the second one's norm."""
    x, y = (np.concatenate([np.ravel(leaf) for leaf in tree.flatten(z)]) for z in (x, y))
    return float(np.linalg.norm(x - y) / np.linalg.norm(y))


@pytest.mark.parametrize(
    ("name", "observations", "lstm_size"),
    [("r2d2", "images", 6), ("impala", "words", 6), ("stac", "vectors", 0), ("rsac", "words", 6)],
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
    [("r2d2", "images", 6), ("popart", "words", 6), ("stac", "vectors", 0), ("rsac", "images", 6)],
)
@eagerly()
def test_an_update_is_near(name: str, observations: str, lstm_size: int) -> None:
    # Adam's first step would be the gradient's sign, of which rounding turns some of the smallest.
    changes = dict(adam_epsilon=1.0) if name in ("r2d2", "rsac") else {}
    exact, rounded = make_both(name, observations, lstm_size, **changes)
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
    assert 1e-5 < _distance(moved, expected_moves) < 0.2


def _assert_metrics_are_near(
    actual: Mapping[str, tf.Tensor], expected: Mapping[str, tf.Tensor]
) -> None:
    assert actual["loss"].dtype == tf.float32
    for name, value in expected.items():
        np.testing.assert_allclose(actual[name], value, rtol=0.03, atol=0.02, err_msg=name)


@pytest.mark.parametrize(
    ("name", "observations", "lstm_size"),
    [("r2d2", "images", 6), ("popart", "words", 0), ("stac", "vectors", 0), ("rsac", "vectors", 6)],
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


PAIRS = specs.BoundedArray((2,), np.float32, -1, 1)
CHOICES = specs.BoundedArray((2,), np.int32, 0, [2, 1])


@pytest.mark.parametrize(
    ("name", "observations", "actions"),
    [
        ("r2d2", "vectors", None),
        ("r2d2", "images", CHOICES),
        ("impala", "words", None),
        ("impala", "vectors", PAIRS),
        ("stac", "vectors", CHOICES),
        ("rsac", "vectors", PAIRS),
    ],
)  # PopArt's policy is IMPALA's
def test_a_policy_compiled_as_a_whole_acts_as_one_that_is_not(
    name: str,
    observations: str,
    actions: specs.BoundedArray | None,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """On the same random numbers too."""
    made = make(name, observations, 6, "float32")
    size, spec = made.batch.mask.shape[1], SPECS[observations]
    inputs = made.batch.inputs
    if actions is not None:
        spec = spec._replace(actions=actions)
        none = tf.zeros([*made.batch.valid.shape, 2], actions.dtype)
        inputs = inputs._replace(previous_action=none)
    changes = dict(epsilon_base=0.8, epsilon_alpha=1.0) if name == "r2d2" else {}
    torso = "mlp" if observations == "vectors" else "shallow"
    agent = make_agent(small_config(name, torso=torso, **changes))
    network = agent.make_network(spec)

    def played() -> list[Any]:
        makes = (
            lambda: agent.make_policy(network, np.arange(size), size, 3),
            lambda: agent.make_evaluation_policy(network, 3),
        )
        outputs = []
        for make_policy in makes:
            policy, state = policy_function(make_policy()), network.initial_state(size)
            for t in range(len(inputs.previous_reward)):
                row = tree.map_structure(lambda x, t=t: x[t], inputs)
                outputs.append(policy(row, state))
                state = outputs[-1].core_state
        return outputs

    expected = played()
    monkeypatch.setattr(tf.config, "list_logical_devices", lambda kind: ["GPU:0"])
    actual = played()
    assert "XLA cannot compile" not in caplog.text
    for x, y in zip(actual, expected, strict=True):
        if actions is not PAIRS:
            np.testing.assert_array_equal(x.action, y.action)
        tree.map_structure(
            lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5), x, y
        )
    assert len({tuple(np.ravel(x.action)) for x in expected}) > 1


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
    """The results of an update."""

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
        ("rsac", {}),
    ],
)
@eagerly()
def test_a_checkpoint_reproduces_the_next_updates_bit_for_bit(
    tmp_path: pathlib.Path, name: str, changes: dict[str, Any]
) -> None:
    config = small_config(name, **changes)
    update, restored = make_update(config), make_update(config, seed=5)
    for step in range(3):
        update(make_batch(config, step))
    path = tf.train.Checkpoint(update=update).write(str(tmp_path / "update"))
    tf.train.Checkpoint(update=restored).read(path).assert_consumed()
    assert int(restored.step) == 3
    for step in range(3, 6):
        for each in (update, restored):
            each(make_batch(config, step))
        for own in ("variables", "network"):
            both = [getattr(each, own) for each in (update, restored)]
            values = [[v.numpy() for v in getattr(x, "variables", x)] for x in both]
            assert same(*values)


@NAMES
@eagerly()
def test_every_field_of_a_config_is_read_by_something_that_is_made_of_it(name: str) -> None:
    read = set.union(*(_read(small_config(name, **changes)) for changes in _FORMS[name]))
    unread = {field.name for field in dataclasses.fields(small_config(name))} - read
    # STAC has two as they stand only, and here no replay.
    stand = {"correction", "pixel_control_cost", "replay_size"} if name == "stac" else set[str]()
    assert unread == stand


# By which all fields of an agent count.
_FORMS: dict[str, list[dict[str, Any]]] = {
    "r2d2": [
        dict(munchausen_alpha=0.9),
        dict(returns="watkins", trust_region=2.0, normalise_td=True),
    ],
    "impala": [dict(replay_fraction=0.5)],
    "popart": [dict(replay_fraction=0.5)],
    "stac": [{}],
    "rsac": [{}],
}


def _read(config: Any) -> set[str]:
    """The fields that are read by something that is made of a config."""
    seen, read = watched(config)
    agent = make_agent(config, seen)
    update = agent.make_update(with_actions_of(config, SPECS["vectors"]))
    update(make_batch(config))
    agent.make_policy(update.network, np.arange(2), 2, 0)
    agent.make_evaluation_policy(update.network, 0)
    if agent.initial_priority is not None:
        rows = np.ones((config.length + 1, 2), np.float32)
        values: dict[str, np.ndarray] = collections.defaultdict(lambda: rows)
        agent.initial_priority(PriorityInput(values, rows[1:], rows[1:], rows > 0, rows[1:]))
    return read


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
    agent = make_agent(small_config(name, torso=torso, frame_stack=2))
    spec = environment_spec(shape, np.uint8)
    network, update = agent.make_network(spec), agent.make_update(spec)
    assert len(network.variables) > 0
    for acting, learning in zip(network.variables, update.network.variables, strict=True):
        assert (acting.shape, acting.name) == (learning.shape, learning.name)


@NAMES
@eagerly()
def test_what_padding_and_masked_rows_hold_changes_nothing(name: str) -> None:
    config = small_config(name)
    batch = make_batch(config)
    real = batch.mask > 0
    assert not real.numpy().all()

    def filled(x: tf.Tensor, where: tf.Tensor, value: float) -> tf.Tensor:
        where = tf.reshape(where, [*where.shape, *[1] * (x.shape.rank - 2)])
        return tf.where(where, x, tf.cast(value, x.dtype))

    dirty = batch._replace(
        inputs=tree.map_structure(lambda x: filled(x, batch.valid, 2.0), batch.inputs),
        action=filled(batch.action, real, NUM_ACTIONS - 1),
        **{
            field: filled(getattr(batch, field), real, np.nan)
            for field in ("reward", "continuation", "log_probability")
        },
    )
    both = [make_update(config) for _ in range(2)]
    updated = [_updated(Made(*made)) for made in zip(both, (batch, dirty), strict=True)]
    states = [[v.numpy() for v in update.variables] for update in both]
    tree.map_structure(np.testing.assert_array_equal, *updated)
    tree.map_structure(np.testing.assert_array_equal, *states)


OF_EACH_KIND = pytest.mark.parametrize("name", ["r2d2", "impala"])  # others learn as IMPALA does


@OF_EACH_KIND
def test_no_gradient_reaches_the_burn_in_the_state_the_targets_or_the_last_row(name: str) -> None:
    config = small_config(name, burn_in=3)
    update, batch = make_update(config), random_batch(config)
    observation, state = batch.inputs.observation, batch.core_state
    with tf.GradientTape() as tape:
        tape.watch([observation, *state])
        loss = update.evaluate(batch).loss
    target = update.target_network.trainable_variables if name == "r2d2" else ()
    by_row, *others = tape.gradient(loss, [observation, *state, *target])
    by_row = np.abs(by_row.numpy()).sum(axis=(1, 2))
    assert (by_row[:3] == 0).all()
    assert (by_row[3:-1] > 0).all()
    assert by_row[-1] == 0  # which is only bootstrapped from
    assert not any(np.any(tf.convert_to_tensor(x)) for x in others if x is not None)


@OF_EACH_KIND
@pytest.mark.parametrize("begins", [None, 0, 2])
def test_the_learner_sees_what_the_actor_logged(name: str, begins: int | None) -> None:
    """With the actor's parameters and the state from before the first step; Q, or ratios of 1."""
    config = small_config(name, batch_size=1)
    update = make_update(config)
    padding = begins or 0 if name == "r2d2" else 0
    batch = random_batch(config, padding=[padding])
    reset = np.zeros(batch.reset.shape, bool)
    if begins is not None:
        reset[begins] = True
    policy = make_agent(config).make_policy(update.network, np.array([0]), 1, 0)
    state = batch.core_state
    actions, log_probabilities, q_taken = (np.zeros(batch.action.shape, x) for x in (int, "f", "f"))
    for t in range(padding, len(reset) - 1):
        if reset[t]:
            state = update.network.initial_state(1)
        output = policy(tree.map_structure(lambda x, t=t: x[t], batch.inputs), state)
        state = output.core_state
        actions[t], log_probabilities[t] = output.action, output.log_probability
        q_taken[t] = output.values.get("q_taken", 0.0)
    batch = batch._replace(
        reset=tf.constant(reset),
        action=tf.constant(actions, tf.int32),
        log_probability=tf.constant(log_probabilities),
    )
    later = batch._replace(core_state=tree.map_structure(lambda x: x + 1.0, batch.core_state))
    seen, seen_later = update.evaluate(batch), update.evaluate(later)
    if name == "r2d2":
        np.testing.assert_allclose(seen.q_taken, q_taken[config.burn_in :], atol=1e-6)
        difference = np.abs(seen.q_taken - seen_later.q_taken)
    else:
        np.testing.assert_allclose(seen.log_ratio, 0.0, atol=1e-6)
        assert float(seen.metrics["mean_rho"]) == pytest.approx(1.0)
        difference = np.abs(seen_later.log_ratio)[begins:]
    assert (difference.max() > 1e-4) == (begins is None)


@OF_EACH_KIND
@pytest.mark.parametrize("lstm_size", [0, 6])
def test_only_a_recurrent_network_sees_the_previous_step(name: str, lstm_size: int) -> None:
    network = make_agent(small_config(name, lstm_size=lstm_size)).make_network(environment_spec())
    state = network.initial_state(2)
    first, after = network.step(inputs_after(0, 0.0), state)
    for inputs, before in (
        (inputs_after(2, 0.0), state),
        (inputs_after(0, 1.0), state),
        (inputs_after(0, 0.0), after),
    ):
        distance = _distance(network.step(inputs, before)[0], first)
        assert (distance > 1e-4) == (lstm_size > 0)


@NAMES
def test_a_seed_fixes_an_actors_stream_bit_for_bit(name: str) -> None:
    changes = dict(epsilon_base=0.8, epsilon_alpha=1.0) if name == "r2d2" else {}
    agent = make_agent(small_config(name, **changes))

    def play(seed: int) -> list[Any]:
        tf.random.set_seed(1)
        network = agent.make_network(with_actions_of(agent.config, environment_spec()))
        policy = agent.make_policy(network, np.arange(4), 4, seed)
        state, outputs = network.initial_state(4), []
        for t in range(20):
            outputs.append(policy(random_inputs(t, 4, agent.config), state))
            state = outputs[-1].core_state
        return outputs

    first, again, other = play(7), play(7), play(8)
    tree.map_structure(np.testing.assert_array_equal, first, again)
    assert any((x.action != y.action).numpy().any() for x, y in zip(first, other, strict=True))
