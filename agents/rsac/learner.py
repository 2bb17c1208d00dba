"""Recurrent SAC's learner step: burn-in, soft targets, three losses, Adam, new priorities."""

from collections.abc import Mapping
from typing import NamedTuple

import tensorflow as tf

from agents import random_numbers
from agents.compilation import update_function
from agents.masking import masked_mean, mean_age
from agents.networks.network import RecurrentNetwork, unroll_trained
from agents.optimization import Adam, create_slots
from agents.prioritized import batch_weights
from agents.rsac.config import Config
from agents.rsac.losses import (
    critic_loss,
    item_targets,
    policy_loss,
    soft_value,
    temperature_loss,
)
from agents.rsac.network import Outputs, head_of, squash_previous
from agents.several_learners import current, gradients_of, mean, whole_metrics
from replay.priorities import mixed_priorities
from replay.structures import Batch


class Evaluation(NamedTuple):
    """The networks' view of a batch's trained rows."""

    critic_loss: tf.Tensor  # []
    policy_loss: tf.Tensor  # []
    temperature_loss: tf.Tensor  # []
    q_taken: tf.Tensor  # [2, L, B], of both critics
    targets: tf.Tensor  # [L, B]
    log_probability: tf.Tensor  # [L, B], of the policy's fresh actions


class SACUpdate(tf.Module):
    """One update of recurrent SAC. Implements `agents.contract.Update`.

    Args:
      network: the one that learns; its variables exist.
      target_network: another of the same make; it starts with the same parameters.
      config: hyperparameters.
    """

    def __init__(
        self, network: RecurrentNetwork, target_network: RecurrentNetwork, config: Config
    ) -> None:
        super().__init__(name="rsac")
        self.network = network
        self.target_network = target_network
        self.step = tf.Variable(0, dtype=tf.int64, trainable=False, name="step")
        self._config = config
        # From TensorFlow's global seed, as the parameters are.
        seed = int(tf.random.uniform([], maxval=2**31 - 1, dtype=tf.int32))
        self._generator = tf.random.Generator.from_seed(seed)
        self.noise = self._generator.state  # which a checkpoint must hold
        head = head_of(network)
        of_policy = {v.ref() for v in head.policy_variables}
        of_others = of_policy | {head.log_temperature.ref()}
        self._policy = [v for v in network.trainable_variables if v.ref() in of_policy]
        self._critics = [v for v in network.trainable_variables if v.ref() not in of_others]
        self._parameters = [*self._critics, *self._policy, head.log_temperature]
        by_default = -float(network.actions.shape[0])
        entropy = config.target_entropy
        self._target_entropy = by_default if entropy is None else entropy
        self._optimizer = Adam(config.learning_rate, epsilon=config.adam_epsilon)
        create_slots(self._optimizer, self._parameters)
        self._follow(1.0)

    @update_function
    def __call__(self, batch: Batch) -> tuple[tf.Tensor, Mapping[str, tf.Tensor]]:
        """Improves the parameters; returns the items' new priorities `[B]` and metrics."""
        config = self._config
        log_temperature = head_of(self.network).log_temperature
        with tf.GradientTape(persistent=True, watch_accessed_variables=False) as tape:
            tape.watch(self._parameters)
            found = self.evaluate(batch)
        # Each loss has parameters of its own: the policy's goes through critics that it leaves.
        of_critics = gradients_of(found.critic_loss, self._critics, tape)
        of_policy = gradients_of(found.policy_loss, self._policy, tape)
        of_temperature = tape.gradient(found.temperature_loss, log_temperature)
        gradients = mean([*of_critics, *of_policy, of_temperature])
        cut = len(self._critics)
        of_critics, norm = tf.clip_by_global_norm(gradients[:cut], config.max_gradient_norm)
        of_policy, policy_norm = tf.clip_by_global_norm(gradients[cut:-1], config.max_gradient_norm)
        lag = mean_age(self.step, batch.learner_step)
        temperature = tf.exp(log_temperature)
        self._optimizer.apply([*of_critics, *of_policy, gradients[-1]], self._parameters)
        self._follow(config.tau)
        self.step.assign_add(1)

        mask = batch.trained(config.burn_in).mask
        q_taken = tf.reduce_min(found.q_taken, axis=0)
        abs_td = tf.abs(found.targets - q_taken)
        priorities = mixed_priorities(abs_td, mask, config.eta)
        metrics = {
            "loss": found.critic_loss,
            "gradient_norm": norm,
            "policy_loss": found.policy_loss,
            "policy_gradient_norm": policy_norm,
            "temperature": temperature,
            "entropy": -masked_mean(found.log_probability, mask),
            "mean_q": masked_mean(q_taken, mask),
            "mean_target": masked_mean(found.targets, mask),
            "mean_abs_td": masked_mean(abs_td, mask),
            "mean_priority": tf.reduce_mean(priorities),
            "parameter_lag": lag,
        }
        return priorities, whole_metrics(metrics, lambda name: False)

    def evaluate(self, batch: Batch) -> Evaluation:
        """The losses of a batch, each to be differentiated by its own parameters alone."""
        config, head = self._config, head_of(self.network)
        batch = batch._replace(inputs=squash_previous(batch.inputs))
        arguments = (batch, batch.core_state, batch.reset, config.burn_in)
        online: Outputs = unroll_trained(self.network, *arguments, learns=True)  # [L + 1, B]
        target: Outputs = unroll_trained(self.target_network, *arguments, learns=False)
        rows = batch.trained(config.burn_in)
        weights = batch_weights(batch, config.importance_exponent)

        policy = online.policy
        u = policy.at(self._draw(batch))
        log_probability = policy.log_probability(u)  # [L + 1, B]
        temperature = tf.exp(head.log_temperature)
        value = soft_value(
            head_of(self.target_network).action_values(target.features, u),
            log_probability,
            temperature,
        )
        targets = item_targets(config, value, rows.reward, rows.continuation, rows.mask)
        features = online.features[:-1]
        q_taken = head.action_values(features, rows.action)
        q_fresh = head.action_values(features, u[:-1])
        log_probability = log_probability[:-1]
        of_loss = (rows.mask, weights)
        return Evaluation(
            critic_loss(q_taken, targets, *of_loss),
            policy_loss(q_fresh, log_probability, temperature, *of_loss),
            temperature_loss(temperature, log_probability, self._target_entropy, *of_loss),
            q_taken,
            targets,
            log_probability,
        )

    def _draw(self, batch: Batch) -> tf.Tensor:
        """Standard normal numbers for this learner's part of a batch's trained rows and the last.

        Each learner draws those of the whole batch, as one alone would.

        Returns:
          `[L + 1, B, D]`.
        """
        learners, (num_numbers,) = current(), self.network.actions.shape
        size = tf.shape(batch.mask)[1]
        shape = [self._config.length + 1, learners.size * size, num_numbers]
        noise = random_numbers.normal(self._generator, shape)
        return noise[:, learners.rank * size : (learners.rank + 1) * size]

    def _follow(self, share: float) -> None:
        """θ⁻ ← θ⁻ + τ (θ − θ⁻), with a share for τ (SAC, Section 6)."""
        for target, online in zip(
            self.target_network.variables, self.network.variables, strict=True
        ):
            target.assign_add(share * (online - target))
