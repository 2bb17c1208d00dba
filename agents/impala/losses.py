"""The losses of a V-trace actor-critic (Espeholt et al. 2018, Section 4.2).

Functions of what a network said: their gradient, too, can be differentiated by hyperparameters.
"""

from typing import NamedTuple

import tensorflow as tf

from agents.impala.config import Config, Correction
from agents.impala.distributions import Distribution
from agents.impala.vtrace import (
    Scalar,
    corrected_log_probability,
    importance_ratio,
    importance_weights,
    leaky_minimum,
    vtrace_returns,
)
from agents.masking import masked_mean, masked_sum, zero_where_masked
from replay.structures import TrainedRows


class Outputs(NamedTuple):
    """What a network says of the trained rows and, of its values, the row after them."""

    policy: Distribution  # [L, B], π
    value: tf.Tensor  # [L + 1, B], n: a value in the rewards' units is V = σ n + μ
    shift: tf.Tensor  # [B] or [], μ
    scale: tf.Tensor  # [B] or [], σ


class Hyperparameters(NamedTuple):
    """Numbers, or scalar tensors to differentiate by."""

    discount: Scalar  # γ
    lambda_: Scalar  # λ
    rho_bar: Scalar  # ρ̄
    c_bar: Scalar  # c̄
    policy_gradient_cost: Scalar
    baseline_cost: Scalar
    entropy_cost: Scalar
    alpha_rho: Scalar = 1.0  # α_ρ, by which ρ is truncated (leaky V-trace)
    alpha_c: Scalar = 1.0  # α_c, by which c is


def fixed_hyperparameters(config: Config) -> Hyperparameters:
    """Those of a config (Espeholt et al. 2018, Section 4.2)."""
    return Hyperparameters(
        discount=config.discount,
        lambda_=config.lambda_,
        rho_bar=config.rho_bar,
        c_bar=config.c_bar,
        policy_gradient_cost=1.0,
        baseline_cost=config.baseline_cost,
        entropy_cost=config.entropy_cost,
    )


class Evaluation(NamedTuple):
    """The loss of a batch, and what it is made of."""

    loss: tf.Tensor  # []
    metrics: dict[str, tf.Tensor]  # [] each, for the log
    log_ratio: tf.Tensor  # [L, B], log π / μ of the actions taken
    value: tf.Tensor  # [L, B], V, in the rewards' own units
    target: tf.Tensor  # [L, B], v, in the rewards' own units


def vtrace_losses(
    outputs: Outputs,
    rows: TrainedRows,
    hyperparameters: Hyperparameters,
    correction: Correction = "vtrace",
) -> Evaluation:
    """The policy's, the baseline's and the entropy's loss, each times its cost (Section 4.2).

        loss = cost_π L_π + cost_V L_V + cost_H L_H

    Of a Gaussian policy its divergence from the standard one stands for the entropy.

    Targets, advantages and importance weights take the outputs as constants. A gradient flows
    through them only to those hyperparameters that are tensors; IMPALA has none.

    Args:
      outputs: of the network.
      rows: what was played, with the learner's own rewards and continuations.
      hyperparameters: of targets and losses.
      correction: for off-policy data.
    """
    h, mask = hyperparameters, rows.mask
    # 0 times the NaN of a masked row would be NaN in a derivative by a hyperparameter.
    reward, continuation, log_mu = (
        zero_where_masked(x, mask) for x in (rows.reward, rows.continuation, rows.log_probability)
    )
    log_pi = outputs.policy.log_probability(rows.action)  # [L, B]
    log_ratio = tf.stop_gradient(log_pi) - log_mu
    weights = importance_weights(
        log_ratio,
        correction,
        rho_bar=h.rho_bar,
        c_bar=h.c_bar,
        lambda_=h.lambda_,
        alpha_rho=h.alpha_rho,
        alpha_c=h.alpha_c,
    )
    # V = σ n + μ: targets are in the rewards' units, losses in those of n.
    output, shift, scale = (tf.stop_gradient(x) for x in outputs[1:])  # n, μ, σ
    value = scale * output + shift
    returns = vtrace_returns(value, reward, h.discount * continuation, weights, mask)
    advantage = (returns.q - shift) / scale - output[:-1]
    target = (returns.value - shift) / scale
    log_pi = corrected_log_probability(log_pi, correction)
    policy_gradient = policy_gradient_loss(log_pi, advantage, weights.policy, mask)
    baseline = baseline_loss(outputs.value[:-1], target, mask)
    regularisation = regularisation_loss(outputs.policy, mask)
    loss = (
        h.policy_gradient_cost * policy_gradient
        + h.baseline_cost * baseline
        + h.entropy_cost * regularisation
    )
    metrics = {
        "policy_gradient_loss": policy_gradient,
        "baseline_loss": baseline,
        **outputs.policy.regularisation_metric(
            regularisation / tf.maximum(tf.reduce_sum(mask), 1.0)
        ),
        "mean_value": masked_mean(value[:-1], mask),
        **_importance_metrics(log_ratio, h, mask),
    }
    return Evaluation(loss, metrics, log_ratio, value[:-1], returns.value)


def policy_gradient_loss(
    log_pi: tf.Tensor, advantage: tf.Tensor, rho: tf.Tensor, mask: tf.Tensor
) -> tf.Tensor:
    """Its gradient is the policy's (Section 4.2), summed over batch and time (Table C.1).

        −Σ_tb mask_tb ρ_tb A_tb log π(a_tb | x_tb),   A = r_s + γ v_{s+1} − V(x_s)

    Args:
      log_pi: `[L, B]`, log π(a | x).
      advantage: `[L, B]`, A.
      rho: `[L, B]`, ρ.
      mask: `[L, B]`, 1 on real steps.

    Returns:
      A scalar.
    """
    tf.debugging.assert_shapes([(x, ("L", "B")) for x in (log_pi, advantage, rho, mask)])
    weight = zero_where_masked(rho * advantage, mask)
    return -tf.reduce_sum(weight * log_pi)


def baseline_loss(value: tf.Tensor, target: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
    """The squared error of the baseline (Section 4.2), summed over batch and time (Table C.1).

        ½ Σ_tb mask_tb (v_tb − V(x_tb))²

    Args:
      value: `[L, B]`, V(x).
      target: `[L, B]`, v.
      mask: `[L, B]`, 1 on real steps.

    Returns:
      A scalar.
    """
    tf.debugging.assert_shapes([(x, ("L", "B")) for x in (value, target, mask)])
    error = zero_where_masked(target - value, mask)
    return 0.5 * tf.reduce_sum(tf.square(error))


def regularisation_loss(policy: Distribution, mask: tf.Tensor) -> tf.Tensor:
    """What keeps the policy broad (Section 4.2), summed over batch and time (Table C.1).

        Σ_tb mask_tb Σ_a π(a | x_tb) log π(a | x_tb)

    is the negative entropy of a categorical policy; each kind has its own.

    Args:
      policy: `[L, B]`, π.
      mask: `[L, B]`, 1 on real steps.

    Returns:
      A scalar.
    """
    each = policy.regularisation()
    tf.debugging.assert_shapes([(x, ("L", "B")) for x in (each, mask)])
    return masked_sum(each, mask)


def _importance_metrics(
    log_ratio: tf.Tensor, h: Hyperparameters, mask: tf.Tensor
) -> dict[str, tf.Tensor]:
    ratio = importance_ratio(log_ratio)
    return {
        "mean_rho": masked_mean(leaky_minimum(ratio, h.rho_bar, h.alpha_rho), mask),
        "clipped_rho": masked_mean(tf.cast(ratio > h.rho_bar, mask.dtype), mask),
    }
