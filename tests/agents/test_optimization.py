"""Annealing, clipping, and optimizers whose variables exist."""

import numpy as np
import pytest
import sonnet as snt
import tensorflow as tf

from agents.optimization import annealed, clip_by_global_norm, create_slots


def test_a_line_to_zero_that_stays_there() -> None:
    rates = [float(annealed(0.5, tf.constant(step, tf.int64), 4)) for step in range(7)]
    np.testing.assert_allclose(rates, [0.5, 0.375, 0.25, 0.125, 0.0, 0.0, 0.0])


def test_every_one_of_many_steps_lowers_the_rate() -> None:
    """Where float32 has run out of integers."""
    steps = tf.constant([2**24, 2**24 + 1], tf.int64)
    rates = [annealed(1.0, step, 2**24 + 2) for step in steps]
    assert rates[1] == rates[0] / 2


@pytest.mark.parametrize(("limit", "scale"), [(2.5, 0.5), (5.0, 1.0), (80.0, 1.0), (None, 1.0)])
def test_clipping_by_the_common_norm(limit: float | None, scale: float) -> None:
    gradients, norm = clip_by_global_norm([tf.constant([3.0]), tf.constant([[4.0]])], limit)
    assert float(norm) == 5.0
    np.testing.assert_allclose([float(g) for g in gradients], [3.0 * scale, 4.0 * scale])


@pytest.mark.parametrize("make", [snt.optimizers.Adam, snt.optimizers.RMSProp])
def test_slots_exist_and_parameters_stay(make: type) -> None:
    parameter = tf.Variable([1.0, -2.0])
    optimizer = make(0.1)
    create_slots(optimizer, [parameter])
    np.testing.assert_array_equal(parameter, [1.0, -2.0])
    slots = [v for v in optimizer.variables if v.shape == parameter.shape]
    assert len(slots) == 2
    assert not any(np.any(v) for v in slots)
