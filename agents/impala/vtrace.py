"""V-trace, the corrections it is compared with, and the losses that learn by them.

Espeholt et al. 2018, Sections 4 and 5.2.2.

Leaky V-trace is its generalisation (Zahavy et al. 2020, Section 3.1): α_ρ = α_c = 1 is V-trace.

Pure functions: their gradient, too, can be differentiated by hyperparameters. Rows with a mask of 0
hold no step: an episode's last observation, after a time limit, or padding. Such a row's value
bootstraps the row before it, and nothing passes through it from the episode that follows.

A leaking ratio is unbounded, and for vectors it may be beyond float32. So no ratio, and no product
of ratios in a target, is more than `MAX_WEIGHT`: where one row of a gradient weighs a hundred times
as much as all others together, the gradient has that row's direction, whatever it weighs.
"""

import math
from typing import NamedTuple, TypeAlias

import tensorflow as tf

from agents.impala.config import Config, Correction
from agents.impala.distributions import Distribution
from agents.masking import masked_mean, masked_sum, zero_where_masked
from replay.structures import TrainedRows

Scalar: TypeAlias = float | tf.Tensor  # a number, or a scalar to differentiate by

EPSILON = 1e-6  # of the ε-correction
MAX_WEIGHT = 1e5  # so that squares of a gradient stay within float32, too


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


class Weights(NamedTuple):
    """The weights of an unroll's rows, `[T, B]` each."""

    delta: tf.Tensor  # ρ of the temporal differences
    trace: tf.Tensor  # c, which carry them back to earlier rows
    policy: tf.Tensor  # ρ of the policy gradient


class Returns(NamedTuple):
    """The targets of an unroll, `[T, B]` each; on masked rows both are the value."""

    value: tf.Tensor  # v_s, the target of V(x_s)
    q: tf.Tensor  # q_s, an estimate of Q(x_s, a_s)


def importance_weights(log_ratio: tf.Tensor, correction: Correction, h: Hyperparameters) -> Weights:
    """The weights of a correction (Sections 4.1 and 5.2.2, Remark 2).

        ρ_t = min(ρ̄, π(a_t | x_t) / μ(a_t | x_t)),   c_t = λ min(c̄, π(a_t | x_t) / μ(a_t | x_t))

    Both minima may leak (`leaky_minimum`): α_ρ and α_c of 1 truncate.

                     δ V        traces   policy gradient
        vtrace       ρ          c        ρ
        one_step     1          λ        ρ
        epsilon      1          λ        1    (and see `corrected_log_probability`)
        none         1          λ        1

    Args:
      log_ratio: `[T, B]`, log π(a_t | x_t) − log μ(a_t | x_t).
      correction: which.
      h: ρ̄, c̄, λ, α_ρ and α_c are taken of it.
    """
    ratio = importance_ratio(log_ratio)
    rho = leaky_minimum(ratio, h.rho_bar, h.alpha_rho)
    one = tf.ones_like(ratio)
    if correction == "vtrace":
        trace = h.lambda_ * leaky_minimum(ratio, h.c_bar, h.alpha_c)
        return Weights(delta=rho, trace=trace, policy=rho)
    policy = rho if correction == "one_step" else one
    return Weights(delta=one, trace=h.lambda_ * one, policy=policy)


def importance_ratio(log_ratio: tf.Tensor) -> tf.Tensor:
    """min(π / μ, `MAX_WEIGHT`) of log π / μ, of any shape."""
    return tf.exp(tf.minimum(log_ratio, math.log(MAX_WEIGHT)))


def leaky_minimum(ratio: tf.Tensor, bar: Scalar, alpha: Scalar) -> tf.Tensor:
    """A truncation that leaks (Zahavy et al. 2020, Equation 5): α min(bar, IS) + (1 − α) IS.

    An α of 1 truncates, 0 leaves the ratio as it is, which is finite and of any shape.
    """
    return alpha * tf.minimum(ratio, bar) + (1.0 - alpha) * ratio


def corrected_log_probability(log_probability: tf.Tensor, correction: Correction) -> tf.Tensor:
    """log π(a | x) as the policy gradient differentiates it (Section 5.2.2).

    The ε-correction keeps it from becoming very small: log(π(a | x) + ε).
    """
    if correction == "epsilon":
        # As a sum of logarithms, because a density may be beyond float32.
        log_epsilon = math.log(EPSILON)
        return log_epsilon + tf.nn.softplus(log_probability - log_epsilon)
    return log_probability


def vtrace_returns(
    value: tf.Tensor, reward: tf.Tensor, discount: tf.Tensor, weights: Weights, mask: tf.Tensor
) -> Returns:
    """V-trace targets, and action values for the policy gradient (Section 4.1, Remark 1, 4.2).

        v_s = V(x_s) + δ_s V + γ_s c_s (v_{s+1} − V(x_{s+1}))
        δ_s V = ρ_s (r_s + γ_s V(x_{s+1}) − V(x_s))
        q_s = r_s + γ_s v_{s+1},   v_T = V(x_T)

    Args:
      value: `[T + 1, B]`, V(x_t).
      reward: `[T, B]`, r_t: the one that followed the action of row t.
      discount: `[T, B]`, γ_t: of row t + 1 as seen from row t; 0 where the environment terminated.
      weights: `[T, B]`, ρ and c.
      mask: `[T, B]`, 1 on real steps.

    Returns:
      v and q. Gradients flow through both: stopping them is the caller's.
    """
    tf.debugging.assert_shapes(
        [(value, ("K", "B"))]
        + [(x, ("T", "B")) for x in (reward, discount, weights.delta, weights.trace, mask)]
    )
    value_t, value_tp1 = value[:-1], value[1:]
    delta = zero_where_masked(weights.delta * (reward + discount * value_tp1 - value_t), mask)
    decay = zero_where_masked(discount * weights.trace, mask)
    rho = zero_where_masked(weights.delta, mask)
    target = value_t + _discounted_sums(delta, decay, rho)  # [T, B]
    target_tp1 = tf.concat([target[1:], value[-1:]], axis=0)
    q = tf.where(mask > 0, reward + discount * target_tp1, value_t)
    return Returns(target, q)


def _discounted_sums(x: tf.Tensor, decay: tf.Tensor, weight: tf.Tensor) -> tf.Tensor:
    """y_t = x_t + decay_t y_{t+1} down the rows of `[T, B]`; the number of rows must be known.

    A decay is reduced where otherwise the weight of some x, times all decays on its way to a row's
    y, would be more than `MAX_WEIGHT`.
    """
    rows, decays, weights = tf.unstack(x), tf.unstack(decay), tf.unstack(weight)
    sums, largest = [rows[-1]], weights[-1]  # largest: weight in the last of the sums
    for t in range(len(rows) - 2, -1, -1):
        bounded = tf.minimum(decays[t], tf.stop_gradient(MAX_WEIGHT / largest))
        sums.append(rows[t] + bounded * sums[-1])
        largest = tf.maximum(weights[t], bounded * largest)
    return tf.stack(sums[::-1])


class Outputs(NamedTuple):
    """A network's outputs on the trained rows; values on the row after them too."""

    policy: Distribution  # [L, B], π
    value: tf.Tensor  # [L + 1, B], n: a value in the rewards' units is V = σ n + μ
    shift: tf.Tensor  # [B] or [], μ
    scale: tf.Tensor  # [B] or [], σ


def fixed_hyperparameters(config: Config) -> Hyperparameters:
    """The hyperparameters of a config (Espeholt et al. 2018, Section 4.2)."""
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
    """The loss of a batch, and its parts."""

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
      rows: the steps, with the learner's own rewards and continuations.
    """
    h, mask = hyperparameters, rows.mask
    # 0 times the NaN of a masked row would be NaN in a derivative by a hyperparameter.
    reward, continuation, log_mu = (
        zero_where_masked(x, mask) for x in (rows.reward, rows.continuation, rows.log_probability)
    )
    log_pi = outputs.policy.log_probability(rows.action)  # [L, B]
    log_ratio = tf.stop_gradient(log_pi) - log_mu
    weights = importance_weights(log_ratio, correction, h)
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

    A scalar of log π, A, ρ and the mask, which is 1 on real steps, `[L, B]` each.
    """
    tf.debugging.assert_shapes([(x, ("L", "B")) for x in (log_pi, advantage, rho, mask)])
    weight = zero_where_masked(rho * advantage, mask)
    return -tf.reduce_sum(weight * log_pi)


def baseline_loss(value: tf.Tensor, target: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
    """The squared error of the baseline (Section 4.2), summed over batch and time (Table C.1).

        ½ Σ_tb mask_tb (v_tb − V(x_tb))²

    A scalar of V, v and the mask, `[L, B]` each.
    """
    tf.debugging.assert_shapes([(x, ("L", "B")) for x in (value, target, mask)])
    error = zero_where_masked(target - value, mask)
    return 0.5 * tf.reduce_sum(tf.square(error))


def regularisation_loss(policy: Distribution, mask: tf.Tensor) -> tf.Tensor:
    """The term that keeps the policy broad (Section 4.2), summed over batch and time (Table C.1).

        Σ_tb mask_tb Σ_a π(a | x_tb) log π(a | x_tb)

    is the negative entropy of a categorical policy; each kind has its own. A scalar of π and the
    mask, `[L, B]` each.
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
