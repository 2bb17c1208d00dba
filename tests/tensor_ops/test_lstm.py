"""The LSTM's unroll and its gradient, against a loop that is differentiated automatically."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pytest
import tensorflow as tf

from tensor_ops import loops, lstm
from tests.tensor_ops.vectors import lanes

T, H = 7, 3


@pytest.fixture(autouse=True, params=[3, 16], ids=["steps", "code"])
def units(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """H: 3 units fill no vector; 16 fill two, and all their steps are one loop."""
    monkeypatch.setattr(request.module, "H", request.param)
    monkeypatch.setattr(loops, "num_threads", lambda: 1)  # 8 items at once, and those left
    with lanes(8):
        yield request.param


class Column(NamedTuple):
    """Rows of one item of a batch."""

    reset: tuple[int, ...] = ()
    invalid: tuple[int, ...] = ()


COLUMNS = (
    Column(),
    Column(reset=(0,)),
    Column(reset=(3,)),
    Column(reset=(T - 1,)),
    Column(invalid=(0,)),
    Column(invalid=(3, 4)),
    Column(invalid=(T - 1,)),
    Column(reset=(2, 3), invalid=(0, 1)),  # padding, then an episode of one step, then another
    Column(reset=(0, 3, T - 1), invalid=(0, 3, T - 1)),  # resets that are none
    Column(reset=(4,), invalid=(3, 5)),
    Column(reset=(1,), invalid=tuple(range(T))),
)
B = len(COLUMNS)
RESET = np.array([[t in column.reset for column in COLUMNS] for t in range(T)])
VALID = np.array([[t not in column.invalid for column in COLUMNS] for t in range(T)])

Tensors = Sequence[tf.Tensor]
Unroll = Callable[..., tuple[tf.Tensor, tf.Tensor, tf.Tensor]]


def _naive(
    gates: tf.Tensor,
    w_hidden: tf.Tensor,
    hidden: tf.Tensor,
    cell: tf.Tensor,
    reset: tf.Tensor,
    valid: tf.Tensor,
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """One item and one row at a time."""
    outputs, hiddens, cells = [], [], []
    for b in range(B):
        h, c = hidden[b], cell[b]
        rows = []
        for t in range(T):
            if reset[t, b] and valid[t, b]:
                h, c = tf.zeros([H]), tf.zeros([H])
            z = gates[t, b] + tf.linalg.matvec(w_hidden, h, transpose_a=True)
            i, f, g, o = z[:H], z[H : 2 * H], z[2 * H : 3 * H], z[3 * H :]
            after = tf.sigmoid(f) * c + tf.sigmoid(i) * tf.tanh(g)
            rows.append(tf.sigmoid(o) * tf.tanh(after))
            if valid[t, b]:
                h, c = rows[-1], after
        outputs.append(tf.stack(rows))
        hiddens.append(h)
        cells.append(c)
    return tf.stack(outputs, axis=1), tf.stack(hiddens), tf.stack(cells)


def _constant(rng: np.random.Generator, *shape: int) -> tf.Tensor:
    return tf.constant(rng.normal(size=shape), tf.float32)


def _arguments() -> Tensors:
    """Gates, weights, hidden and cell."""
    rng = np.random.default_rng(0)
    gates, w_hidden = _constant(rng, T, B, 4 * H), _constant(rng, H, 4 * H) * (3 / H) ** 0.5
    return gates, w_hidden, _constant(rng, B, H), _constant(rng, B, H)


def _loss(results: Tensors, enters: tf.Tensor) -> tf.Tensor:
    """A different weight on everything that enters it; on what does not, it is 0."""
    rng = np.random.default_rng(1)
    weights = [_constant(rng, *x.shape) for x in results]
    terms = [tf.reduce_sum(w * x) for w, x in zip(weights, results, strict=True)]
    return tf.reduce_sum(enters * terms)


def _unrolled(unroll: Unroll, arguments: Tensors, valid: np.ndarray = VALID) -> Tensors:
    return unroll(*arguments, tf.constant(RESET), tf.constant(valid))


def _first(unroll: Unroll, arguments: Tensors, enters: tf.Tensor) -> Tensors:
    with tf.GradientTape() as tape:
        tape.watch(arguments)
        loss = _loss(_unrolled(unroll, arguments), enters)
    return tape.gradient(loss, arguments, unconnected_gradients="zero")


def _assert_close(
    actual: Tensors, expected: Tensors, *, rtol: float = 1e-4, atol: float = 2e-6
) -> None:
    for x, y in zip(actual, expected, strict=True):
        np.testing.assert_allclose(x, y, rtol=rtol, atol=atol)


COMPILED = tf.function(autograph=False, jit_compile=True)
EVERYTHING, LAST_STATE = tf.constant([1.0, 1.0, 1.0]), tf.constant([0.0, 1.0, 1.0])
WAYS = pytest.mark.parametrize(
    ("units", "wrap"),
    [(3, lambda f: f), (16, tf.function(autograph=False)), (3, COMPILED)],
    ids=["steps-eager", "code-traced", "compiled"],
    indirect=["units"],
)


@WAYS
def test_equals_the_loop(wrap: Callable[..., Any]) -> None:
    actual = _unrolled(wrap(lstm.unroll), _arguments())
    _assert_close(actual, _unrolled(_naive, _arguments()))


@WAYS
def test_gradients_equal_those_of_the_loop(wrap: Callable[..., Any]) -> None:
    """No gradient passes a reset; each one passes invalid rows, which have none themselves."""
    arguments = _arguments()
    gradients = wrap(lambda enters, *x: _first(lstm.unroll, x, enters))
    for enters in (EVERYTHING, LAST_STATE):
        expected = _first(_naive, arguments, enters)
        assert all(np.abs(x).max() > 1e-2 for x in expected)
        _assert_close(gradients(enters, *arguments), expected)


@WAYS
def test_second_derivatives_equal_those_of_the_loop(wrap: Callable[..., Any]) -> None:
    def second(unroll: Unroll, arguments: Tensors) -> Tensors:
        with tf.GradientTape() as tape:
            tape.watch(arguments)
            first = _first(unroll, arguments, EVERYTHING)
            loss = tf.add_n([tf.reduce_sum(x**2) for x in first])
        return tape.gradient(loss, arguments)

    actual = wrap(lambda *x: second(lstm.unroll, x))(*_arguments())
    expected = second(_naive, _arguments())
    assert all(np.abs(x).max() > 1e-2 for x in expected)
    _assert_close(actual, expected, atol=2e-5)


def test_gates_of_bfloat16_are_all_that_is_of_it() -> None:
    """The arithmetic is that of float32: only the gates' gradient is rounded."""
    gates, *others = _arguments()
    rounded = tf.cast(gates, tf.bfloat16)
    exact = tf.cast(rounded, tf.float32)
    results = _unrolled(lstm.unroll, [rounded, *others])
    _assert_close(results, _unrolled(lstm.unroll, [exact, *others]), rtol=1e-6, atol=1e-7)
    assert all(x.dtype == tf.float32 for x in results)
    of_gates, *of_others = _first(lstm.unroll, [rounded, *others], EVERYTHING)
    expected, *expected_others = _first(lstm.unroll, [exact, *others], EVERYTHING)
    assert of_gates.dtype == tf.bfloat16
    assert all(x.dtype == tf.float32 for x in of_others)
    np.testing.assert_allclose(tf.cast(of_gates, tf.float32), expected, rtol=2**-8, atol=1e-7)
    _assert_close(of_others, expected_others, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("units", [3], indirect=True)
def test_a_compiled_unroll_is_a_loop() -> None:
    """XLA takes minutes for a hundred steps that are written out."""

    def number_of_products(num_rows: int) -> int:
        gates, *others = _arguments()
        arguments = (tf.tile(gates, [num_rows, 1, 1]), *others)
        flags = [tf.constant(np.tile(x, [num_rows, 1])) for x in (RESET, VALID)]
        graph = COMPILED(lambda *x: lstm.unroll(*x, *flags)).get_concrete_function(*arguments)
        definition = graph.graph.as_graph_def()
        nodes = [*definition.node, *(n for f in definition.library.function for n in f.node_def)]
        return sum(node.op in ("MatMul", "BatchMatMulV2") for node in nodes)

    assert 0 < number_of_products(1) == number_of_products(3)


@pytest.mark.parametrize("units", [16], indirect=True)
def test_rows_that_are_gathered_teach_as_others() -> None:
    """The gradient of gathered rows comes as slices with their indices."""

    def taught(unroll: Unroll) -> Tensors:
        arguments = _arguments()
        with tf.GradientTape() as tape:
            tape.watch(arguments)
            outputs, *_ = _unrolled(unroll, arguments)
            loss = tf.reduce_sum(tf.gather(outputs, [1, 4, 4]) ** 2)
        return tape.gradient(loss, arguments)

    _assert_close(taught(lstm.unroll), taught(_naive))


def test_where_all_steps_are_one_loop(units: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def types() -> set[str]:
        arguments = _arguments()
        traced = tf.function(lambda *x: _first(lstm.unroll, x, EVERYTHING), autograph=False)
        operations = traced.get_concrete_function(*arguments).graph.get_operations()
        return {op.type for op in operations} & {"PyFunc", "PartitionedCall"}

    assert types() == ({"PyFunc"} if units == 16 else {"PartitionedCall"})
    monkeypatch.setattr(tf.config, "list_logical_devices", lambda kind: ["GPU:0"])
    assert types() == {"PartitionedCall"}


@pytest.mark.parametrize("units", [16], indirect=True)
def test_saturated_gates_have_finite_gradients() -> None:
    gates, *others = _arguments()
    arguments = [1e4 * gates, *others]
    actual = _first(lstm.unroll, arguments, EVERYTHING)
    assert all(np.isfinite(x).all() for x in actual)
    _assert_close(actual, _first(_naive, arguments, EVERYTHING))
