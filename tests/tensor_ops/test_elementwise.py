"""Operations over single numbers and sums, with their derivatives."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from tensor_ops import elementwise
from tensor_ops.elementwise import add_beside, add_bias, as_float, of_sum, relu, where_rows
from tensor_ops.loops import sums_of_parts
from tests.tensor_ops.numbers import HALF_STEP, derivatives, normal
from tests.tensor_ops.vectors import lanes


@pytest.mark.parametrize(("of", "kind"), [(np.asarray, np.ndarray), (tf.constant, tf.Tensor)])
def test_rows_are_of_one_structure_or_of_another(of: Callable[..., Any], kind: type) -> None:
    x, y = ({"a": of(np.full((2, 3), n)), "b": of(np.full(2, n))} for n in (1, 2))
    chosen = where_rows(of([True, False]), x, y)
    assert isinstance(chosen["a"], kind)
    assert np.asarray(chosen["a"]).tolist() == [[1] * 3, [2] * 3]
    assert np.asarray(chosen["b"]).tolist() == [1, 2]


@pytest.mark.parametrize("dtype", [tf.float32, tf.bfloat16])
def test_bytes_are_read_as_fractions_of_255(dtype: tf.DType) -> None:
    x = np.arange(256, dtype=np.uint8)
    fractions = as_float(x, dtype)
    assert fractions.dtype == dtype
    rounding = 1e-6 if dtype == tf.float32 else HALF_STEP
    np.testing.assert_allclose(tf.cast(fractions, tf.float32), x / 255, rtol=rounding)
    assert [float(fractions[i]) for i in (0, 255)] == [0.0, 1.0]


def test_as_float_of_other_types() -> None:
    np.testing.assert_array_equal(as_float(np.array([0, 255], np.uint8)), [0.0, 1.0])
    np.testing.assert_array_equal(as_float(np.array([-3.5, 255.0])), [-3.5, 255.0])
    assert as_float(np.array([2], np.int32)).dtype == tf.float32


AROUND_0 = tf.constant([-2.0, -1e-30, -0.0, 0.0, 1e-30, 3.0])


@pytest.mark.parametrize("dtype", [tf.float32, tf.bfloat16])
def test_relu_and_its_gradient_around_0(dtype: tf.DType) -> None:
    x = tf.cast(AROUND_0, dtype)
    assert np.signbit(tf.cast(x, tf.float32)).tolist() == [True] * 3 + [False] * 3
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = relu(x)
    of_x = tape.gradient(y, x, output_gradients=tf.cast(tf.range(1, 7), dtype))
    assert y.dtype == of_x.dtype == dtype
    np.testing.assert_array_equal(y, tf.nn.relu(x))
    np.testing.assert_array_equal(tf.cast(of_x, tf.float32), [0.0, 0.0, 0.0, 0.0, 5.0, 6.0])


@pytest.mark.parametrize("wrap", [lambda f: f, tf.function], ids=["eager", "traced"])
def test_relu_can_be_differentiated_twice(wrap: Callable[[Any], Any]) -> None:
    def second(x: tf.Tensor) -> tf.Tensor:
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape() as inner:
                inner.watch(x)
                cubes = relu(x) ** 3
            first = inner.gradient(cubes, x)
        return outer.gradient(first, x)

    x = tf.constant([-2.0, 0.0, 0.5, 3.0])
    np.testing.assert_allclose(wrap(second)(x), [0.0, 0.0, 3.0, 18.0])


SUMS = [
    (add_bias, tf.add, [normal(3, 4, 5, 2), normal(2, seed=1)]),
    (
        add_beside,
        lambda x, y, b: x + (y + b),
        [normal(3, 4, 5, 2), normal(3, 4, 5, 2, seed=2), normal(2, seed=1)],
    ),
]


@pytest.mark.parametrize("wrap", [lambda function: function, tf.function], ids=["eager", "graph"])
@pytest.mark.parametrize(("ours", "plain", "inputs"), SUMS, ids=["bias", "beside"])
def test_a_biass_derivatives_are_those_of_a_sum(
    ours: Callable[..., tf.Tensor],
    plain: Callable[..., tf.Tensor],
    inputs: list[tf.Tensor],
    wrap: Callable[[Any], Any],
) -> None:
    first, again = wrap(lambda: derivatives(ours, inputs))()
    expected_first, expected_again = derivatives(plain, inputs)
    for actual, expected in zip([*first, again], [*expected_first, expected_again], strict=True):
        np.testing.assert_allclose(actual, expected, rtol=1e-6)
    np.testing.assert_array_equal(ours(*inputs), plain(*inputs))


@pytest.mark.parametrize(
    ("shape", "size", "expected"),
    [
        ((40, 3, 5, 16), 16, True),  # more rows than parts
        ((1, 1, 3, 32), 16, True),
        ((7, 80), 16, True),  # more vectors than are summed at once
        ((7, 72), 8, True),
        ((7, 72), 16, False),
        ((7, 16), 0, False),
    ],
)
def test_many_numbers_of_bfloat16_are_summed_by_a_loop(
    shape: tuple[int, ...], size: int, expected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    called = []

    def sums(*given: Any) -> tf.Tensor:
        called.append(given)
        return sums_of_parts(*given)

    monkeypatch.setattr(elementwise, "sums_of_parts", sums)
    monkeypatch.setattr(elementwise, "_MANY", np.prod(shape))
    of_y = tf.cast(normal(*shape), tf.bfloat16)
    with lanes(size):
        _, of_b = of_sum(of_y)
        assert bool(called) == expected
        monkeypatch.setattr(elementwise, "_MANY", np.prod(shape) + 1)
        of_sum(of_y)
        assert len(called) == expected  # of few it is TensorFlow's
    total = tf.cast(of_y, tf.float64).numpy().reshape(-1, shape[-1]).sum(axis=0)
    assert of_b.dtype == tf.bfloat16
    np.testing.assert_allclose(tf.cast(of_b, tf.float64), total, rtol=HALF_STEP, atol=1e-5)
