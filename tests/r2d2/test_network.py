"""The dueling head, and R2D2's network from its config."""

import numpy as np
import tensorflow as tf

from r2d2.agent import VARIANTS
from r2d2.network import DuelingHead, make_network
from replay.structures import NetworkInput
from tests.batches import OBSERVATION_SIZE, environment_spec
from tests.r2d2.batches import small_config


def _inputs(action: int, reward: float) -> NetworkInput:
    return NetworkInput(
        tf.ones([2, OBSERVATION_SIZE]), tf.fill([2], action), tf.fill([2], np.float32(reward))
    )


def test_dueling_head_is_value_plus_centred_advantage() -> None:
    head = DuelingHead(num_actions=4, hidden_size=5)
    x = np.random.default_rng(0).normal(size=(3, 6)).astype(np.float32)
    actual = head(x).numpy()
    (w_hidden,) = [v.numpy() for v in head._hidden.variables if v.shape.rank == 2]
    value_w, advantage_w = head._value.w.numpy(), head._advantage.w.numpy()
    for b in range(3):  # all biases are still 0
        value = np.maximum(x[b] @ w_hidden[:, :5], 0) @ value_w
        advantage = np.maximum(x[b] @ w_hidden[:, 5:], 0) @ advantage_w
        expected = value + advantage - advantage.sum() / 4
        np.testing.assert_allclose(actual[b], expected, atol=1e-5)
    assert np.ptp(actual, axis=-1).min() > 1e-2


def test_in_bfloat16_only_the_hidden_layers_are() -> None:
    exact, rounded = (DuelingHead(4, 5, dtype) for dtype in (tf.float32, tf.bfloat16))
    x = np.random.default_rng(0).normal(size=(3, 6)).astype(np.float32)
    for head in (exact, rounded):
        head(x)
    for ours, other in zip(rounded.variables, exact.variables, strict=True):
        ours.assign(other)
    assert rounded(x).dtype == tf.float32
    assert rounded._hidden(x).dtype == tf.bfloat16
    error = np.abs(rounded(x) - exact(x)).max()
    assert 1e-5 < error < 0.02 * np.abs(exact(x)).max()


def test_the_papers_network_feeds_the_flattened_convolutions_to_the_lstm() -> None:
    network = make_network(VARIANTS["r2d2"], environment_spec(num_actions=18))
    inputs = NetworkInput(
        tf.zeros([1, 84, 84, 4], tf.uint8), tf.zeros([1], tf.int32), tf.zeros([1])
    )
    q, state = network.step(inputs, network.initial_state(1))
    assert q.shape == (1, 18)
    assert state.hidden.shape == state.cell.shape == (1, 512)
    (w_input,) = [v for v in network.variables if v.name == "lstm/w_input:0"]
    assert w_input.shape == (7 * 7 * 64 + 18 + 1, 4 * 512)


def test_the_feed_forward_network_sees_the_observation_alone() -> None:
    network = make_network(small_config(lstm_size=0), environment_spec())
    assert network.initial_state(2) == ()
    first, state = network.step(_inputs(0, 0.0), ())
    second, _ = network.step(_inputs(2, 1.0), ())
    np.testing.assert_array_equal(first, second)
    assert state == ()


def test_the_recurrent_network_sees_the_previous_step() -> None:
    network = make_network(small_config(), environment_spec())
    state = network.initial_state(2)
    first, after = network.step(_inputs(0, 0.0), state)
    for other in (_inputs(2, 0.0), _inputs(0, 1.0)):
        assert np.abs(network.step(other, state)[0] - first).max() > 1e-4
    assert np.abs(network.step(_inputs(0, 0.0), after)[0] - first).max() > 1e-4
