"""IMPALA's learner step: V-trace actor-critic with RMSProp (Espeholt et al. 2018, Section 4.2)."""

from collections.abc import Mapping
from typing import NamedTuple

import sonnet as snt
import tensorflow as tf

from agents.contract import Network
from agents.impala.config import Config
from agents.impala.lag import LaggedCopy
from agents.impala.policy import log_probability
from agents.impala.vtrace import corrected_log_probability, importance_weights, vtrace_returns
from agents.masking import masked_mean, masked_sum, mean_age, zero_where_masked
from agents.networks import RecurrentNetwork, unroll_trained
from agents.optimization import annealed, clip_by_global_norm, create_slots
from agents.rewards import transform_reward
from replay.structures import UNKNOWN, Batch


class Losses(NamedTuple):
    """Sums over the real steps of a batch: scalars."""

    policy_gradient: tf.Tensor
    baseline: tf.Tensor
    entropy: tf.Tensor  # the negative entropy


class Evaluation(NamedTuple):
    """What the network says of a batch's trained rows."""

    loss: tf.Tensor  # []
    losses: Losses
    log_ratio: tf.Tensor  # [L, B], log π / μ of the actions taken
    value: tf.Tensor  # [L, B]


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


class ImpalaUpdate(tf.Module):
    """One IMPALA update. Implements `agents.contract.Update`.

    Args:
      network: whose parameters are learned; its variables exist.
      lagging_network: another of the same make, for actors to fetch, where the config has a policy
        lag; None where actors are to have the newest parameters.
      config: hyperparameters.
    """

    def __init__(
        self, network: RecurrentNetwork, lagging_network: RecurrentNetwork | None, config: Config
    ) -> None:
        super().__init__(name="impala")
        self.learned_network = network
        self.step = tf.Variable(0, dtype=tf.int64, trainable=False, name="step")
        self._config = config
        self._learning_rate = tf.Variable(
            config.learning_rate, trainable=False, name="learning_rate"
        )
        self._optimizer = snt.optimizers.RMSProp(
            self._learning_rate,
            decay=config.rmsprop_decay,
            momentum=config.rmsprop_momentum,
            epsilon=config.rmsprop_epsilon,
        )
        create_slots(self._optimizer, network.trainable_variables)
        self._lagged = (
            LaggedCopy(network, lagging_network, config.policy_lag) if lagging_network else None
        )
        self.network: Network = lagging_network or network

    @tf.function(autograph=False)
    def __call__(self, batch: Batch) -> tuple[None, Mapping[str, tf.Tensor]]:
        """Improves the parameters; returns no priorities, and metrics."""
        config, parameters = self._config, self.learned_network.trainable_variables
        with tf.GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(parameters)
            evaluation = self.evaluate(batch)
        gradients = tape.gradient(evaluation.loss, parameters)
        gradients, norm = clip_by_global_norm(gradients, config.max_gradient_norm)
        if self._lagged is not None:
            self._lagged.before_update(self.step)
        learning_rate = annealed(config.learning_rate, self.step, config.annealing_steps)
        self._learning_rate.assign(learning_rate)
        age = self._age(batch)
        self._optimizer.apply(gradients, parameters)
        self.step.assign_add(1)
        return None, {
            **self._metrics(batch, evaluation),
            "gradient_norm": norm,
            "learning_rate": learning_rate,
            "parameter_lag": age,
        }

    def evaluate(self, batch: Batch) -> Evaluation:
        """The loss of a batch. Only the trained rows have a gradient."""
        config = self._config
        reset = batch.reset | batch.life_lost if config.life_loss else batch.reset
        logits, value = unroll_trained(
            self.learned_network, batch, batch.core_state, reset, config.burn_in
        )  # [L + 1, B, A], [L + 1, B]
        logits = logits[:-1]
        action, log_mu, reward, mask = (
            x[config.burn_in :]
            for x in (batch.action, batch.log_probability, batch.reward, batch.mask)
        )
        log_pi = log_probability(logits, action)  # [L, B]
        log_ratio = tf.stop_gradient(log_pi) - log_mu
        weights = importance_weights(
            log_ratio,
            config.correction,
            rho_bar=config.rho_bar,
            c_bar=config.c_bar,
            lambda_=config.lambda_,
        )
        reward = transform_reward(reward, config.reward_transform)
        returns = vtrace_returns(value, reward, self._discount(batch), weights, mask)
        log_pi = corrected_log_probability(log_pi, config.correction)
        losses = Losses(
            policy_gradient_loss(log_pi, returns.q - value[:-1], weights.policy, mask),
            baseline_loss(value[:-1], returns.value, mask),
            entropy_loss(logits, mask),
        )
        loss = (
            losses.policy_gradient
            + config.baseline_cost * losses.baseline
            + config.entropy_cost * losses.entropy
        )
        return Evaluation(loss, losses, log_ratio, value[:-1])

    def _discount(self, batch: Batch) -> tf.Tensor:
        """γ of the trained rows, `[L, B]`."""
        discount = self._config.discount * batch.continuation
        if self._config.life_loss:
            # The life that step t lost is seen on row t + 1.
            discount = tf.where(batch.life_lost[1:], tf.zeros_like(discount), discount)
        return discount[self._config.burn_in :]

    def _age(self, batch: Batch) -> tf.Tensor:
        """Updates since those whose parameters acted: items know when they were fetched."""
        known = tf.not_equal(batch.learner_step, UNKNOWN)
        acted = tf.maximum(batch.learner_step - self._config.policy_lag, 0)
        return mean_age(self.step, tf.where(known, acted, batch.learner_step))

    def _metrics(self, batch: Batch, evaluation: Evaluation) -> Mapping[str, tf.Tensor]:
        mask = batch.mask[self._config.burn_in :]
        ratio = tf.exp(evaluation.log_ratio)
        clipped = tf.cast(ratio > self._config.rho_bar, tf.float32)
        num_steps = tf.maximum(tf.reduce_sum(mask), 1.0)
        return {
            "loss": evaluation.loss,
            "policy_gradient_loss": evaluation.losses.policy_gradient,
            "baseline_loss": evaluation.losses.baseline,
            "entropy": -evaluation.losses.entropy / num_steps,
            "mean_value": masked_mean(evaluation.value, mask),
            "mean_rho": masked_mean(tf.minimum(ratio, self._config.rho_bar), mask),
            "clipped_rho": masked_mean(clipped, mask),
        }
