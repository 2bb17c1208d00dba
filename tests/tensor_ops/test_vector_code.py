"""Loops that LLVM compiles: each operation on arrays, compared with numpy's."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from tensor_ops import vector_code
from tensor_ops.vector_code import Byte, Code, Index, Pointer
from tests.tensor_ops.vectors import lanes

_lanes = vector_code.lanes


@pytest.fixture(autouse=True, params=[8, 16])
def size(request: pytest.FixtureRequest) -> Iterator[int]:
    """The number of lanes of a vector."""
    with lanes(request.param):
        yield request.param


def _compiled(write: Callable[..., None], num_arrays: int) -> Callable[..., None]:
    """A loop over n floats: `write(code, i, *arrays)` writes what is done with a vector."""
    code = Code([Pointer] * num_arrays + [Index])
    *arrays, n = code.arguments
    with code.loop(n, step=code.lanes) as i:
        write(code, i, *arrays)
    compiled = code.compiled()

    def run(*arrays: np.ndarray) -> None:
        compiled(*(array.ctypes.data for array in arrays), len(arrays[0]))

    return run


def _floats(*others: float) -> np.ndarray:
    made = np.random.default_rng(0).normal(size=64 - len(others))
    return np.concatenate([made, others]).astype(np.float32)


def test_the_modules_example_doubles_as_many_as_it_is_told() -> None:
    code = Code([Pointer, Pointer, Index])
    x, y, n = code.arguments
    with code.loop(n, step=code.lanes) as i:
        code.store(code.load(x, i) * 2.0, y, i)
    double = code.compiled()
    given, made = _floats(), np.zeros(64, np.float32)
    double(given.ctypes.data, made.ctypes.data, 0)  # no iteration at all
    assert not made.any()
    double(given.ctypes.data, made.ctypes.data, 32)
    np.testing.assert_array_equal(made, np.where(np.arange(64) < 32, 2 * given, 0))


def test_arithmetic_is_numpys_and_a_product_with_a_sum_may_be_rounded_once() -> None:
    x, y, made = _floats(), _floats()[::-1].copy(), np.zeros(64, np.float32)

    def write(code: Code, i: Any, x: Any, y: Any, out: Any) -> None:
        one, other = code.load(x, i), code.load(y, i)
        code.store((one - other) * (one + other) + one * 0.5, out, i)

    _compiled(write, 3)(x, y, made)
    np.testing.assert_allclose(made, (x - y) * (x + y) + x / 2, rtol=1e-5, atol=1e-6)


def test_bfloat16_is_read_exactly_and_written_as_tensorflow_rounds() -> None:
    ties = np.array([1 + 2.0**-8, 1 + 3 * 2.0**-8, -1 - 2.0**-8, 3.4e38, -3.4e38], np.float32)
    others = [0.0, -0.0, np.inf, -np.inf, np.nan, 1e-40]
    x = _floats(*ties, *others)
    expected = tf.cast(x, tf.bfloat16)

    def write(code: Code, i: Any, x: Any, half: Any, again: Any, rounded: Any) -> None:
        value = code.load(x, i)
        code.store(value, half, i, "bfloat16")
        code.store(code.load(half, i, "bfloat16"), again, i)
        code.store(code.as_bfloat16(value), rounded, i)

    half = np.zeros(64, expected.numpy().dtype)
    again, rounded = np.zeros(64, np.float32), np.zeros(64, np.float32)
    _compiled(write, 4)(x, half, again, rounded)
    np.testing.assert_array_equal(half.astype(np.float32), expected.numpy().astype(np.float32))
    np.testing.assert_array_equal(again, half.astype(np.float32))
    np.testing.assert_array_equal(rounded, again)


def test_bytes_are_fractions() -> None:
    x, made = np.arange(256, dtype=np.uint8), np.zeros(256, np.float32)
    _compiled(lambda code, i, x, out: code.store(code.load(x, i, "uint8"), out, i), 2)(x, made)
    np.testing.assert_allclose(made, x / 255, rtol=1.3e-7)
    assert made[0] == 0


def test_what_is_positive() -> None:
    x = _floats(0.0, -0.0, np.nan, np.inf, -np.inf)
    y, relu, where = _floats()[::-1].copy(), np.zeros_like(x), np.zeros_like(x)

    def write(code: Code, i: Any, x: Any, y: Any, relu: Any, where: Any) -> None:
        code.store(code.positive(code.load(x, i)), relu, i)
        code.store(code.where_positive(code.load(x, i), code.load(y, i)), where, i)

    _compiled(write, 4)(x, y, relu, where)
    np.testing.assert_array_equal(relu, np.maximum(x, 0))  # what is no number stays that
    np.testing.assert_array_equal(where, np.where(x > 0, y, 0))


def test_exponentials_are_numpys_to_float32s_last_digits() -> None:
    ends = [0.0, -0.0, 1e-20, 87, -87, 0.625, -0.625, np.inf, -np.inf, np.nan]
    x = np.concatenate([np.linspace(-90, 90, 4000), np.linspace(-1, 1, 4086), ends])
    x = x.astype(np.float32)
    power, sigmoid, tanh = (np.zeros_like(x) for _ in range(3))

    def write(code: Code, i: Any, x: Any, *made: Any) -> None:
        functions = (code.exponential, code.sigmoid, code.tanh)
        for function, to in zip(functions, made, strict=True):
            code.store(function(code.load(x, i)), to, i)

    _compiled(write, 4)(x, power, sigmoid, tanh)
    exact = x.astype(np.float64)
    inside = np.clip(exact, -87, 87)
    np.testing.assert_allclose(power, np.exp(inside), rtol=2e-7)
    np.testing.assert_allclose(sigmoid, 1 / (1 + np.exp(-inside)), rtol=3e-7)
    np.testing.assert_allclose(tanh, np.tanh(exact), rtol=4e-7)


def test_several_items_at_a_time_and_those_left_one_by_one(size: int) -> None:
    """Each item is counted once, and the count tells how many came with it."""
    code = Code([Pointer, Index, Index])
    counts, begin, end = code.arguments
    for item, count in code.several(begin, end, 3):
        for i in range(count):
            place = (item + i) * size
            code.store(code.load(counts, place) + code.numbers(count), counts, place)
    run = code.compiled()
    for start, stop in [(0, 7), (2, 8), (4, 4), (5, 6)]:
        made = np.zeros((8, size), np.float32)
        run(made.ctypes.data, start, stop)
        whole = start + (stop - start) // 3 * 3
        expected = [3 * (start <= i < whole) + (whole <= i < stop) for i in range(8)]
        np.testing.assert_array_equal(made, np.repeat(expected, size).reshape(8, size))


@pytest.mark.parametrize("or_equal", [False, True])
def test_the_larger_of_two_and_its_bytes(or_equal: bool) -> None:
    x = np.repeat(_floats()[:32], 2)
    y = np.where(np.arange(64) % 3 == 0, x, x[::-1]).astype(np.float32)
    found, which = np.zeros(64, np.float32), np.zeros(64, np.uint8)
    ones = np.zeros(64, np.float32)

    def write(code: Code, i: Any, x: Any, y: Any, found: Any, which: Any, ones: Any) -> None:
        one, other = code.load(x, i), code.load(y, i)
        value, place = code.larger(one, other, code.bytes(7), code.bytes(200), or_equal)
        code.store(value, found, i)
        code.store_bytes(place, which, i)
        code.store(code.where_equal(code.load_bytes(which, i), 200, one), ones, i)

    _compiled(write, 5)(x, y, found, which, ones)
    later = y >= x if or_equal else y > x
    np.testing.assert_array_equal(found, np.maximum(x, y))
    np.testing.assert_array_equal(which, np.where(later, 200, 7))
    np.testing.assert_array_equal(ones, np.where(later, x, 0))


def test_variables_keep_sums_over_a_loop_and_one_float_fills_a_vector(size: int) -> None:
    code = Code([Pointer, Pointer, Index])
    x, y, n = code.arguments
    (total,) = code.variables([code.numbers(0.5)])
    with code.loop(n) as i:
        code.prefetch(x, i + 1)
        total.set(total.get() + code.spread(x, i) * code.load(y, 0))
    zero = code.zeros()
    code.store(code.choose(code.spread(x, 0), zero, total.get() / code.numbers(2.0)), y, 0)
    x, y = np.arange(5, dtype=np.float32), np.arange(size, dtype=np.float32)
    expected = (0.5 + x.sum() * y) / 2
    code.compiled()(x.ctypes.data, y.ctypes.data, 5)
    np.testing.assert_array_equal(y, expected)


def test_places_are_summed_and_compared_as_pythons(size: int) -> None:
    """Row r of 4 goes to row 2 r + 1 of 6, where there is one; `at_most` ends a loop."""
    code = Code([Pointer, Pointer, Index])
    x, y, n = code.arguments
    own, marks = code.array(size), code.array(size, Byte)
    code.store_bytes(code.bytes(3), marks, 0)
    with code.loop(code.at_most(n, 4)) as row:
        to = row * 2 + 1
        with code.where(to, 6) as (inside, outside):
            with inside:
                code.store(code.load(x, row * size), y, to * size)
            with outside:
                code.store(code.load(x, row * size), own, 0)
                kept = code.where_equal(code.load_bytes(marks, 0), 3, code.load(own, 0))
                code.store(kept, y, 0)
    run = code.compiled()
    given = np.random.default_rng(0).normal(size=(4, size)).astype(np.float32)
    for told in (2, 9):
        made = np.zeros((6, size), np.float32)
        run(given.ctypes.data, made.ctypes.data, told)
        expected = np.zeros_like(made)
        rows = min(told, 4)
        expected[1 : 2 * min(rows, 3) : 2] = given[: min(rows, 3)]
        if rows == 4:
            expected[0] = given[3]
        np.testing.assert_array_equal(made, expected)


def test_a_loop_is_written_as_it_stands_where_a_function_is_traced() -> None:
    @vector_code.compiled_once
    def write(number: int) -> Callable[..., Any]:
        pairs = list(zip([number], [1], strict=True))  # autograph's own zip is not strict
        return lambda: pairs

    @tf.function
    def traced() -> Any:
        compiled: Callable[..., Any] = write(2)
        return compiled()

    assert traced() == [(2, 1)]


@pytest.mark.parametrize(
    ("features", "expected"),
    [
        ({"avx512f": True, "avx2": True, "fma": True}, 16),
        ({"avx512f": False, "avx2": True, "fma": True}, 8),
        ({"avx2": True, "fma": False}, 0),
        ({}, 0),
    ],
)
def test_the_processor_decides_how_long_a_vector_is(
    features: dict[str, bool], expected: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(vector_code.llvm, "features", lambda: features)
        assert _lanes.__wrapped__() == expected


def test_a_loop_is_compiled_once_for_its_arguments_and_for_what_the_processor_has() -> None:
    written = []

    @vector_code.compiled_once
    def write(number: int, *, twice: bool = False) -> Callable[..., Any]:
        this = (vector_code.lanes(), vector_code.has_tiles(), number, twice)
        written.append(this)
        return lambda: this

    different = [(8, False, 1, False), (16, False, 1, False), (16, True, 1, False)]
    different += [(16, True, 2, False), (16, True, 2, True)]
    for number_of_lanes, tiles, number, twice in different * 2:
        with lanes(number_of_lanes, tiles=tiles):
            compiled = write(number, twice=True) if twice else write(number)
            assert compiled() == (number_of_lanes, tiles, number, twice)
    assert written == different
