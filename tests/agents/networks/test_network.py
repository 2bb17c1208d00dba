"""The recurrent network: an unroll equals its steps; previous actions and rewards enter it."""

from collections.abc import Callable

import numpy as np
import pytest
import sonnet as snt
import tensorflow as tf
import tree
from acme import specs

from agents.impala.config import Config
from agents.networks.core import make_core
from agents.networks.network import RecurrentNetwork, choices_of, unroll_trained_core
from agents.networks.torsos import make_torso
from replay.structures import NO_ACTION, Nest, NetworkInput
from tests.batches import random_batch

T, B, A = 5, 3, 4
DISCRETE = specs.DiscreteArray(A)
BOUNDED = specs.BoundedArray((A,), np.float32, -1, 1)


class TwoHeads(snt.Module):
    """A head whose outputs are a structure."""

    def __init__(self) -> None:
        super().__init__()
        self._logits = snt.Linear(A)
        self._value = snt.Linear(1)

    def __call__(self, x: tf.Tensor) -> dict[str, tf.Tensor]:
        return {"logits": self._logits(x), "value": self._value(x)[:, 0]}


def _network(
    lstm_size: int = 6, *, actions: specs.BoundedArray = DISCRETE, sees_previous_step: bool = True
) -> RecurrentNetwork:
    tf.random.set_seed(0)
    network = RecurrentNetwork(
        make_torso("mlp", (7,)),
        make_core(lstm_size),
        TwoHeads(),
        actions,
        sees_previous_step=sees_previous_step,
    )
    network.step(_row(0, actions), network.initial_state(B))
    return network


def _inputs(actions: specs.BoundedArray = DISCRETE) -> NetworkInput:
    rng = np.random.default_rng(0)
    image = tf.constant(rng.integers(256, size=(T, B, 2, 3)), tf.uint8)
    if actions is DISCRETE:
        previous_action = tf.constant(rng.integers(NO_ACTION, A, size=(T, B)), tf.int32)
    else:
        previous_action = tf.constant(rng.uniform(-1, 1, size=(T, B, A)), tf.float32)
    return NetworkInput(image, previous_action, tf.constant(rng.normal(size=(T, B)), tf.float32))


def _row(t: int, actions: specs.BoundedArray = DISCRETE) -> NetworkInput:
    return tree.map_structure(lambda x: x[t], _inputs(actions))


def _flags(value: bool) -> tf.Tensor:
    return tf.fill([T, B], value)


@pytest.mark.parametrize(
    ("lstm_size", "actions", "wrap"),
    [(6, DISCRETE, lambda f: f), (6, BOUNDED, tf.function), (0, DISCRETE, lambda f: f)],
)
def test_unroll_equals_repeated_steps(
    lstm_size: int, actions: specs.BoundedArray, wrap: Callable
) -> None:
    network = _network(lstm_size, actions=actions)
    state = network.initial_state(B)
    outputs, final = wrap(network.unroll)(_inputs(actions), state, _flags(False), _flags(True))
    for t in range(T):
        expected, state = network.step(_row(t, actions), state)
        for name in ("logits", "value"):
            np.testing.assert_allclose(outputs[name][t], expected[name], atol=1e-6)
    tree.map_structure(lambda x, y: np.testing.assert_allclose(x, y, atol=1e-6), final, state)
    assert outputs["logits"].shape == (T, B, A)
    assert outputs["value"].shape == (T, B)


@pytest.mark.parametrize("lstm_size", [0, 6])
def test_the_row_after_the_trained_ones_is_the_unrolls_without_a_gradient(lstm_size: int) -> None:
    network = _network(lstm_size)
    config = Config(burn_in=0, length=T - 1, batch_size=B, lstm_size=lstm_size)
    batch = random_batch(config, num_real=[T - 1, T - 1, T - 3])._replace(inputs=_inputs())
    reset = tf.constant(np.random.default_rng(1).random((T, B)) < 0.3)
    state, variables = batch.core_state, network.trainable_variables
    with tf.GradientTape(persistent=True) as tape:
        expected, _ = network.unroll_core(batch.inputs, state, reset, batch.valid)
        actual = unroll_trained_core(network, batch, state, reset, burn_in=0)
        sums = [tf.reduce_sum(x[:-1] ** 3) for x in (actual, expected)]
        last = tf.reduce_sum(actual[-1])
    np.testing.assert_allclose(actual, expected, atol=1e-6)
    zero = {"unconnected_gradients": tf.UnconnectedGradients.ZERO}
    for ours, theirs in zip(*(tape.gradient(x, variables, **zero) for x in sums), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-5)
    assert not any(np.any(x) for x in tape.gradient(last, variables, **zero))


def _value(network: RecurrentNetwork, **changes: Nest) -> np.ndarray:
    inputs = _row(0)._replace(**{name: tf.constant(value) for name, value in changes.items()})
    return network.step(inputs, network.initial_state(B))[0]["value"].numpy()


def test_previous_action_is_one_hot_and_none_is_all_zero() -> None:
    network = _network()
    w_input = next(v for v in network.trainable_variables if v.name == "lstm/w_input:0")
    assert w_input.shape[0] == 7 + A + 1
    actions = [[NO_ACTION] * B, *([a] * B for a in range(A))]
    values = [_value(network, previous_action=action) for action in actions]
    assert len({value.tobytes() for value in values}) == A + 1
    # Without the weights of the one-hot code all actions look like none.
    weights = w_input.numpy()
    weights[7 : 7 + A] = 0
    w_input.assign(weights)
    for action in actions:
        np.testing.assert_array_equal(_value(network, previous_action=action), values[0])


def test_bounded_previous_actions_enter_the_core_as_they_are() -> None:
    network = _network(actions=BOUNDED)
    inputs = _row(0, BOUNDED)
    image = network._torso(inputs.observation)
    reward = np.clip(inputs.previous_reward, -1, 1)[:, None]
    expected = np.concatenate([image, inputs.previous_action, reward], axis=1)
    np.testing.assert_array_equal(network._embed(inputs), expected)
    none = network._embed(inputs._replace(previous_action=tf.zeros([B, A])))
    np.testing.assert_array_equal(none[:, 7 : 7 + A], np.zeros([B, A]))


@pytest.mark.parametrize(
    ("actions", "are"),
    [
        (specs.BoundedArray((2,), np.float32, -1, 1), "2 numbers from -1 to 1"),
        (specs.BoundedArray((3,), np.float32, [-1, -2, 0], 0.5), "3 numbers from -2 to 0.5"),
        (specs.BoundedArray((1,), np.float32, -np.inf, np.inf), "1 number from -inf to inf"),
    ],
)
def test_who_needs_discrete_actions_says_what_these_are(
    actions: specs.BoundedArray, are: str
) -> None:
    with pytest.raises(ValueError, match=f"needs discrete actions, but .*'s are {are}\\.$"):
        choices_of(actions)
    assert choices_of(DISCRETE) == (A,)


def test_previous_reward_is_clipped_to_one() -> None:
    network = _network()
    rewards = (-40.0, -1.0, -0.5, 1.0, 7.0)
    low, least, inside, most, high = (
        _value(network, previous_reward=np.full(B, reward, np.float32)) for reward in rewards
    )
    np.testing.assert_array_equal(low, least)
    np.testing.assert_array_equal(high, most)
    assert len({x.tobytes() for x in (least, inside, most)}) == 3


def test_the_previous_step_can_be_hidden() -> None:
    network = _network(sees_previous_step=False)
    before = _value(network)
    after = _value(
        network, previous_action=[A - 1] * B, previous_reward=np.full(B, 0.7, np.float32)
    )
    np.testing.assert_array_equal(before, after)
