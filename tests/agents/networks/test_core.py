"""The LSTM against Sonnet's. Its unroll is tested beside the other cores'."""

import numpy as np
import pytest
import sonnet as snt
import tensorflow as tf
import tree

from agents.networks.core import LSTM, NoMemory, make_core

T, B, D, H = 6, 3, 4, 5


@pytest.fixture
def lstm() -> LSTM:
    tf.random.set_seed(0)
    core = LSTM(H)
    core.step(tf.zeros([1, D]), core.initial_state(1))
    return core


def _inputs(seed: int = 0) -> tf.Tensor:
    return tf.constant(np.random.default_rng(seed).normal(size=(T, B, D)), tf.float32)


def _state(seed: int = 1) -> snt.LSTMState:
    hidden, cell = np.random.default_rng(seed).normal(size=(2, B, H)).astype(np.float32)
    return snt.LSTMState(tf.constant(hidden), tf.constant(cell))


NO_RESET, ALL_VALID = np.zeros((T, B), bool), np.ones((T, B), bool)


def _assert_close(x: tf.Tensor, y: tf.Tensor) -> None:
    tree.map_structure(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6), x, y)


def test_steps_equal_sonnets_lstm(lstm: LSTM) -> None:
    sonnets = snt.LSTM(H)
    sonnets(tf.zeros([1, D]), sonnets.initial_state(1))
    ours = {v.name: v for v in lstm.trainable_variables}
    theirs = {v.name: v for v in sonnets.trainable_variables}
    np.testing.assert_array_equal(ours["lstm/bias:0"], theirs["lstm/b:0"])  # forget bias 1
    for mine, name in [("w_input", "w_i"), ("w_hidden", "w_h"), ("bias", "b")]:
        noise = tf.random.normal(ours[f"lstm/{mine}:0"].shape)
        ours[f"lstm/{mine}:0"].assign(noise)
        theirs[f"lstm/{name}:0"].assign(noise)

    state, expected_state = _state(), _state()
    for x in _inputs():
        output, state = lstm.step(x, state)
        expected, expected_state = sonnets(x, expected_state)
        _assert_close(output, expected)
        _assert_close(state, expected_state)


def test_initial_weights_have_sonnets_scale() -> None:
    tf.random.set_seed(0)
    core = LSTM(100)
    core.step(tf.zeros([1, 400]), core.initial_state(1))
    deviation = {v.name: np.std(v.numpy()) for v in core.trainable_variables}
    # A normal distribution cut off at two standard deviations has 0.88 of its deviation left.
    assert deviation["lstm/w_input:0"] == pytest.approx(0.88 / 20, rel=0.02)
    assert deviation["lstm/w_hidden:0"] == pytest.approx(0.88 / 10, rel=0.02)


def test_no_memory_passes_its_inputs_on() -> None:
    core = make_core(0)
    assert isinstance(core, NoMemory)
    assert core.initial_state(B) == ()
    np.testing.assert_array_equal(core.step(_inputs()[0], ())[0], _inputs()[0])
    outputs, state = core.unroll(_inputs(), (), ~NO_RESET, ~ALL_VALID)
    np.testing.assert_array_equal(outputs, _inputs())
    assert state == ()
