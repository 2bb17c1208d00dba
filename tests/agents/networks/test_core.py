"""Cores: against Sonnet's LSTM, and resets and invalid rows against unrolls made by hand."""

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


def _flags(*rows_and_columns: tuple[int, int], otherwise: bool) -> tf.Tensor:
    flags = np.full((T, B), otherwise)
    for row, column in rows_and_columns:
        flags[row, column] = not otherwise
    return tf.constant(flags)


NO_RESET, ALL_VALID = _flags(otherwise=False), _flags(otherwise=True)


def _assert_close(x: tf.Tensor, y: tf.Tensor) -> None:
    tree.map_structure(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-6), x, y)


def test_a_compiled_unroll_equals_one_that_is_not(lstm: LSTM) -> None:
    """XLA has columns of zeros beside the inputs."""

    def gradients(*arguments: tf.Tensor) -> tuple[tf.Tensor, ...]:
        with tf.GradientTape() as tape:
            tape.watch(arguments[0])
            outputs, state = lstm.unroll(*arguments)
            loss = tf.reduce_sum(tf.sin(outputs)) + tf.reduce_sum(state.cell)
        return outputs, state, tape.gradient(loss, [arguments[0], *lstm.trainable_variables])

    arguments = (_inputs(), _state(), NO_RESET, ALL_VALID)
    _assert_close(tf.function(gradients, jit_compile=True)(*arguments), gradients(*arguments))


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


def test_unroll_equals_repeated_steps(lstm: LSTM) -> None:
    outputs, final = lstm.unroll(_inputs(), _state(), NO_RESET, ALL_VALID)
    state = _state()
    for t, x in enumerate(_inputs()):
        expected, state = lstm.step(x, state)
        _assert_close(outputs[t], expected)
    _assert_close(final, state)


def test_a_reset_inside_an_unroll_equals_separate_unrolls(lstm: LSTM) -> None:
    """Two episodes in one unroll: the second starts from zero in its own column only."""
    x, state = _inputs(), _state()
    outputs, final = lstm.unroll(x, state, _flags((2, 0), (0, 1), otherwise=False), ALL_VALID)
    plain, plain_final = lstm.unroll(x, state, NO_RESET, ALL_VALID)

    second, second_final = lstm.unroll(x[2:], lstm.initial_state(B), NO_RESET[2:], ALL_VALID[2:])
    _assert_close(outputs[:2, 0], plain[:2, 0])
    _assert_close(outputs[2:, 0], second[:, 0])
    _assert_close(final.cell[0], second_final.cell[0])
    from_zero, _ = lstm.unroll(x, lstm.initial_state(B), NO_RESET, ALL_VALID)
    _assert_close(outputs[:, 1], from_zero[:, 1])
    _assert_close(outputs[:, 2], plain[:, 2])
    _assert_close(final.hidden[2], plain_final.hidden[2])
    assert np.abs(outputs[2:, 0] - plain[2:, 0]).max() > 1e-2


def test_invalid_rows_leave_the_state_as_it_is(lstm: LSTM) -> None:
    x, state = _inputs(), _state()
    invalid = [(0, 0), (1, 0), (3, 1), (5, 2)]
    # A reset on an invalid row is no reset either.
    outputs, final = lstm.unroll(
        x, state, _flags((1, 0), otherwise=False), _flags(*invalid, otherwise=True)
    )
    for column in range(B):
        kept = [t for t in range(T) if (t, column) not in invalid]
        alone = tree.map_structure(lambda s, c=column: s[c : c + 1], state)
        rows = len(kept)
        expected, expected_final = lstm.unroll(
            tf.gather(x, kept)[:, column : column + 1],
            alone,
            NO_RESET[:rows, :1],
            ALL_VALID[:rows, :1],
        )
        _assert_close(tf.gather(outputs, kept)[:, column], expected[:, 0])
        _assert_close(final.hidden[column], expected_final.hidden[0])
        _assert_close(final.cell[column], expected_final.cell[0])


def test_no_memory_passes_its_inputs_on() -> None:
    core = make_core(0)
    assert isinstance(core, NoMemory)
    assert core.initial_state(B) == ()
    np.testing.assert_array_equal(core.step(_inputs()[0], ())[0], _inputs()[0])
    outputs, state = core.unroll(_inputs(), (), ~NO_RESET, ~ALL_VALID)
    np.testing.assert_array_equal(outputs, _inputs())
    assert state == ()
