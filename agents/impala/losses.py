"""The losses of a V-trace actor-critic (Espeholt et al. 2018, Section 4.2)."""

import tensorflow as tf

from agents.masking import masked_sum, zero_where_masked


def policy_gradient_loss(
    log_pi: tf.Tensor, advantage: tf.Tensor, rho: tf.Tensor, mask: tf.Tensor
) -> tf.Tensor:
    """Its gradient is the policy's (Section 4.2), summed over batch and time (Table C.1).

        −Σ_tb mask_tb ρ_tb A_tb log π(a_tb | x_tb),   A = r_s + γ v_{s+1} − V(x_s)

    Args:
      log_pi: `[L, B]`, log π(a | x).
      advantage: `[L, B]`, A; no gradient flows into it, nor into ρ.
      rho: `[L, B]`, ρ.
      mask: `[L, B]`, 1 on real steps.

    Returns:
      A scalar.
    """
    tf.debugging.assert_shapes([(x, ("L", "B")) for x in (log_pi, advantage, rho, mask)])
    weight = zero_where_masked(tf.stop_gradient(rho * advantage), mask)
    return -tf.reduce_sum(weight * log_pi)


def baseline_loss(value: tf.Tensor, target: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
    """The squared error of the baseline (Section 4.2), summed over batch and time (Table C.1).

        ½ Σ_tb mask_tb (v_tb − V(x_tb))²

    Args:
      value: `[L, B]`, V(x).
      target: `[L, B]`, v; no gradient flows into it.
      mask: `[L, B]`, 1 on real steps.

    Returns:
      A scalar.
    """
    tf.debugging.assert_shapes([(x, ("L", "B")) for x in (value, target, mask)])
    error = zero_where_masked(tf.stop_gradient(target) - value, mask)
    return 0.5 * tf.reduce_sum(tf.square(error))


def entropy_loss(logits: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
    """The negative entropy of the policy (Section 4.2), summed over batch and time (Table C.1).

        Σ_tb mask_tb Σ_a π(a | x_tb) log π(a | x_tb)

    Args:
      logits: `[L, B, A]`, of π.
      mask: `[L, B]`, 1 on real steps.

    Returns:
      A scalar.
    """
    tf.debugging.assert_shapes([(logits, ("L", "B", "A")), (mask, ("L", "B"))])
    log_pi = tf.nn.log_softmax(logits)
    return masked_sum(tf.reduce_sum(tf.exp(log_pi) * log_pi, axis=-1), mask)
