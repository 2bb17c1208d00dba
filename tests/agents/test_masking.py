"""Masked elements count for nothing, whatever they hold, NaN too."""

import numpy as np
import tensorflow as tf

from agents.masking import masked_mean, masked_sum, zero_where_masked

X = tf.constant([[1.0, np.nan], [3.0, -8.0]])
MASK = tf.constant([[1.0, 0.0], [1.0, 1.0]])


def test_sums_and_means_are_of_the_real_elements() -> None:
    np.testing.assert_array_equal(zero_where_masked(X, MASK), [[1.0, 0.0], [3.0, -8.0]])
    assert float(masked_sum(X, MASK)) == -4.0
    assert float(masked_mean(X, MASK)) == np.float32(-4 / 3)


def test_nothing_real_is_zero() -> None:
    assert float(masked_sum(X, 0 * MASK)) == 0.0
    assert float(masked_mean(X, 0 * MASK)) == 0.0
