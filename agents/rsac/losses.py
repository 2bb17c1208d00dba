"""Soft actor-critic's targets and losses (Haarnoja et al. 2018, "... Algorithms and Applications").

Each expectation over replay is the mean of a batch's rows, weighted by the importance of their
item; a row that is no real step counts as 0.
"""

import tensorflow as tf

from agents.masking import zero_where_masked
from agents.prioritized import n_step_returns
from agents.rsac.config import Config


def soft_value(
    action_values: tf.Tensor, log_probability: tf.Tensor, temperature: tf.Tensor
) -> tf.Tensor:
    """The soft value of a state by one action of the policy (Equation 3, with two critics).

        V(s) = min_i Q_i(s, a) − α log π(a | s),   a ~ π

    Args:
      action_values: `[2, ...]`, Q_i.
      log_probability: `[...]`.
      temperature: α, a scalar.

    Returns:
      `[...]`.
    """
    return tf.reduce_min(action_values, axis=0) - temperature * log_probability


def item_targets(
    config: Config,
    value: tf.Tensor,
    reward: tf.Tensor,
    continuation: tf.Tensor,
    mask: tf.Tensor,
) -> tf.Tensor:
    """The targets of an item's trained rows (Equation 5's Q̂, of n steps).

        y_t = Σ_{k<m} γ^k r_{t+k} + γ^m V(s_{t+m})

    Entropies of the steps between are left out where n > 1: those actions are not the policy's, and
    its density there has no bound.

    Args:
      config: γ and n.
      value: `[L + 1, B]`, V.
      reward: `[L, B]`.
      continuation: `[L, B]` 0 or 1.
      mask: `[L, B]` 1 on real steps.

    Returns:
      y, `[L, B]`; for m and the rows that mean nothing see `n_step_returns`.
    """
    return n_step_returns(value, reward, config.discount * continuation, mask, config.n_step)


def critic_loss(
    action_values: tf.Tensor, targets: tf.Tensor, mask: tf.Tensor, weights: tf.Tensor
) -> tf.Tensor:
    """The squared error of both critics (Equation 5).

        1/(L B) Σ_tb w_b mask_tb Σ_i ½ (y_tb − Q_i(s_tb, a_tb))²

    Args:
      action_values: `[2, L, B]`, of the actions taken.
      targets: `[L, B]`, y; no gradient flows into them.
      mask: `[L, B]`, 1 on real steps.
      weights: `[B]`, importance weights.

    Returns:
      A scalar.
    """
    # Masked before it is squared: the derivative of NaN would be NaN.
    error = zero_where_masked(tf.stop_gradient(targets) - action_values, mask)
    return _mean(0.5 * tf.reduce_sum(tf.square(error), axis=0), mask, weights)


def policy_loss(
    action_values: tf.Tensor,
    log_probability: tf.Tensor,
    temperature: tf.Tensor,
    mask: tf.Tensor,
    weights: tf.Tensor,
) -> tf.Tensor:
    """The policy's divergence from exp(Q / α), but for a constant (Equation 9).

        1/(L B) Σ_tb w_b mask_tb (α log π(a_tb | s_tb) − min_i Q_i(s_tb, a_tb))

    Args:
      action_values: `[2, L, B]`, of actions tanh(μ + σ ε), which the policy is differentiated by.
      log_probability: `[L, B]`, of the same.
      temperature: α; no gradient flows into it.
      mask, weights: as for `critic_loss`.

    Returns:
      A scalar.
    """
    least = tf.reduce_min(action_values, axis=0)
    return _mean(tf.stop_gradient(temperature) * log_probability - least, mask, weights)


def temperature_loss(
    temperature: tf.Tensor,
    log_probability: tf.Tensor,
    target_entropy: float,
    mask: tf.Tensor,
    weights: tf.Tensor,
) -> tf.Tensor:
    """J(α), whose step raises α where entropy is below its target (Equation 18).

        1/(L B) Σ_tb w_b mask_tb (−α log π(a_tb | s_tb) − α H̄)

    Args:
      temperature: α = exp(log α), so that it stays positive; log α is what is learned.
      log_probability: `[L, B]`; no gradient flows into it.
      target_entropy: H̄.
      mask, weights: as for `critic_loss`.

    Returns:
      A scalar.
    """
    excess = tf.stop_gradient(log_probability) + target_entropy
    return _mean(-temperature * excess, mask, weights)


def _mean(x: tf.Tensor, mask: tf.Tensor, weights: tf.Tensor) -> tf.Tensor:
    tf.debugging.assert_shapes([(x, ("L", "B")), (mask, ("L", "B")), (weights, ("B",))])
    return tf.reduce_mean(weights * zero_where_masked(x, mask))
