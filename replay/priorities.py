"""Priorities from errors, and the weights that undo their bias."""

import tensorflow as tf


def mixed_priorities(abs_td: tf.Tensor, mask: tf.Tensor, eta: float) -> tf.Tensor:
    """An item's priority: a mix of the largest and the mean of its absolute errors.

        p = η max_t |δ_t| + (1 - η) mean_t |δ_t|,   t over the steps in the mask

    R2D2 (Kapturowski et al. 2019), Section 2.3, with n-step errors and η = 0.9.

    Args:
      abs_td: `[T, B]`, |δ| of the trained steps; the sign must be gone already, or errors would
        cancel.
      mask: `[T, B]` float, 1 on real steps.
      eta: η in [0, 1].

    Returns:
      `[B]`; 0 for an item without a real step.
    """
    abs_td, mask = tf.convert_to_tensor(abs_td), tf.convert_to_tensor(mask)
    tf.debugging.assert_shapes([(abs_td, ("T", "B")), (mask, ("T", "B"))])
    real = tf.where(mask > 0, abs_td, 0.0)  # where, not *: padding may hold anything, even infinity
    largest = tf.reduce_max(real, axis=0)  # [B]
    mean = tf.math.divide_no_nan(tf.reduce_sum(real, axis=0), tf.reduce_sum(mask, axis=0))
    return eta * largest + (1.0 - eta) * mean


def importance_weights(probability: tf.Tensor, table_size: tf.Tensor, beta: float) -> tf.Tensor:
    """Weights that undo, in part, the bias of sampling by priority.

        w_i = (N P(i))^-β / max_j (N P(j))^-β,   j over the whole batch

    Prioritized experience replay (Schaul et al. 2016), Section 3.4; R2D2's Table 2 gives β = 0.6.

    Args:
      probability: `[B]` float64, P(i).
      table_size: `[B]` int64, N.
      beta: β; 0 makes every weight 1.

    Returns:
      `[B]` float32 in (0, 1], the largest exactly 1.
    """
    probability = tf.cast(probability, tf.float64)  # N P(i) of a rare item underflows in float32
    size = tf.cast(table_size, tf.float64)
    tf.debugging.assert_shapes([(probability, ("B",)), (size, ("B",))])
    log_weight = -beta * (tf.math.log(size) + tf.math.log(probability))
    return tf.cast(tf.exp(log_weight - tf.reduce_max(log_weight)), tf.float32)
