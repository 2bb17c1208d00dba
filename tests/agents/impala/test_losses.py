"""The three losses by hand: sums over batch and time."""

import numpy as np
import pytest
import tensorflow as tf

from agents.impala.distributions import Categorical
from agents.impala.vtrace import baseline_loss, policy_gradient_loss, regularisation_loss

MASK = tf.constant([[1.0, 1.0], [1.0, 0.0]])


def _entropy_loss(logits: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
    return regularisation_loss(Categorical(logits), mask)


def test_policy_gradient_loss_is_a_sum() -> None:
    log_pi = tf.constant([[-1.0, -2.0], [-3.0, np.nan]])
    advantage = tf.constant([[2.0, -1.0], [0.5, np.nan]])
    rho = tf.constant([[1.0, 0.5], [0.2, np.nan]])
    log_pi = tf.where(MASK > 0, log_pi, 0.0)
    with tf.GradientTape() as tape:
        tape.watch(log_pi)
        loss = policy_gradient_loss(log_pi, advantage, rho, MASK)
    assert float(loss) == pytest.approx(2.0 - 0.5 * 2.0 + 0.1 * 3.0)
    np.testing.assert_allclose(tape.gradient(loss, log_pi), [[-2.0, 0.5], [-0.1, 0.0]], rtol=1e-6)


def test_baseline_loss_is_half_a_sum_of_squares() -> None:
    value = tf.constant([[1.0, 0.0], [2.0, 5.0]])
    target = tf.constant([[3.0, -1.0], [2.5, np.nan]])
    with tf.GradientTape() as tape:
        tape.watch(value)
        loss = baseline_loss(value, target, MASK)
    assert float(loss) == pytest.approx(0.5 * (4.0 + 1.0 + 0.25))
    np.testing.assert_allclose(tape.gradient(loss, value), [[-2.0, 1.0], [-0.5, 0.0]])


def test_the_regularisation_of_a_categorical_policy_is_the_negative_sum_of_entropies() -> None:
    p = np.array([[[0.2, 0.8], [0.5, 0.5]], [[0.9, 0.1], [0.3, 0.7]]])
    entropy = -(p * np.log(p)).sum(axis=-1)
    loss = _entropy_loss(tf.constant(np.log(p) - 3.0, tf.float32), MASK)
    assert float(loss) == pytest.approx(-(entropy[0, 0] + entropy[0, 1] + entropy[1, 0]))
    certain = _entropy_loss(tf.constant([[[0.0, -1e9]]]), tf.ones([1, 1]))
    assert float(certain) == 0.0


def test_losses_grow_with_batch_and_time() -> None:
    """Twice the rows, twice the loss: nothing is averaged."""
    rng = np.random.default_rng(0)
    x, y, z = (tf.constant(rng.normal(size=(3, 2)), tf.float32) for _ in range(3))
    logits = tf.constant(rng.normal(size=(3, 2, 4)), tf.float32)
    for axis in (0, 1):
        twice = [tf.concat([t, t], axis) for t in (x, y, z, tf.ones([3, 2]), logits)]
        for loss, double in [
            (policy_gradient_loss(x, y, z, tf.ones([3, 2])), policy_gradient_loss(*twice[:4])),
            (baseline_loss(x, y, tf.ones([3, 2])), baseline_loss(twice[0], twice[1], twice[3])),
            (_entropy_loss(logits, tf.ones([3, 2])), _entropy_loss(twice[4], twice[3])),
        ]:
            assert float(double) == pytest.approx(2 * float(loss), rel=1e-5)


def test_shapes_that_do_not_fit_are_refused() -> None:
    x, narrow = tf.ones([3, 2]), tf.ones([3, 1])
    with pytest.raises(ValueError, match="dimension"):
        policy_gradient_loss(x, x, x, narrow)
    with pytest.raises(ValueError, match="dimension"):
        baseline_loss(x, narrow, x)
    with pytest.raises(ValueError, match="dimension"):
        _entropy_loss(tf.ones([3, 2, 4]), narrow)
