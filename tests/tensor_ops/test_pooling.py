"""Max-pooling, beside TensorFlow's."""

import numpy as np
import pytest
import tensorflow as tf

from tensor_ops.pooling import max_pool
from tests.tensor_ops.numbers import HALF_STEP, derivatives, normal
from tests.tensor_ops.vectors import lanes


@pytest.mark.parametrize(
    ("shape", "size", "dtype"),
    [
        ((3, 8, 7, 2), 16, tf.float32),  # no whole vectors of channels: XLA's loops
        ((2, 7, 9, 16), 0, tf.bfloat16),
        ((3, 8, 7, 32), 16, tf.float32),  # loops, over several rows of windows and one that is left
        ((2, 9, 6, 16), 8, tf.bfloat16),
        ((1, 1, 2, 16), 16, tf.float32),
    ],
)
def test_pooling_is_tensorflows_with_itsderivatives(
    shape: tuple[int, ...], size: int, dtype: tf.DType
) -> None:
    with lanes(size):
        _compare_pooling(shape, dtype)


def _compare_pooling(shape: tuple[int, ...], dtype: tf.DType) -> None:
    # A black sky: most pixels are equal, and the first of them is the one that is pooled.
    x = tf.cast(tf.nn.relu(normal(*shape)), dtype)
    b = tf.cast(normal(shape[-1], seed=1), dtype)

    def pool(x: tf.Tensor, b: tf.Tensor) -> tf.Tensor:  # what several windows give, in float32
        y = tf.nn.max_pool2d(tf.cast(x + b, tf.float32), ksize=3, strides=2, padding="SAME")
        return tf.cast(y, x.dtype)

    def assert_equal(actual: tf.Tensor, expected: tf.Tensor) -> None:
        np.testing.assert_array_equal(*(tf.cast(x, tf.float32) for x in (actual, expected)))

    (ours, ours_of_b), ours_again = derivatives(max_pool, [x, b])
    (theirs, _), theirs_again = derivatives(pool, [x, b])
    assert_equal(max_pool(x, b), pool(x, b))
    assert_equal(ours, theirs)
    assert_equal(ours_again, theirs_again)
    # TensorFlow rounds what pixels have been given before it sums them for the bias.
    given = tf.cast(normal(*max_pool(x, b).shape, seed=4), dtype)
    expected = tf.reduce_sum(tf.cast(given, tf.float32), axis=[0, 1, 2])
    rounding = 1e-5 if dtype == tf.float32 else HALF_STEP
    np.testing.assert_allclose(tf.cast(ours_of_b, tf.float32), expected, rtol=rounding, atol=1e-5)


@pytest.mark.parametrize(("width", "expected"), [(2048, True), (2049, False)])
def test_pooling_in_loops_takes_rows_that_a_cache_holds(width: int, expected: bool) -> None:
    image = tf.zeros([1, 3, width, 16])

    @tf.function
    def pool(x: tf.Tensor) -> tf.Tensor:
        return max_pool(x, tf.zeros([16]))

    with lanes(16):
        operations = pool.get_concrete_function(image).graph.get_operations()
        assert pool(image).shape == (1, 2, -(-width // 2), 16)
    assert any(op.type == "PyFunc" for op in operations) == expected


def test_pooling_keeps_what_is_no_number() -> None:
    x = tf.tensor_scatter_nd_update(normal(1, 7, 9, 16), [[0, 2, 4, 5]], [np.nan])
    with lanes(16):
        y = max_pool(x, tf.zeros([16])).numpy()
    assert np.isnan(y[0, 1, 2, 5])  # of the windows that have it, the one that has it in the middle
