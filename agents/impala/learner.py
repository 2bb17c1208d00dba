"""The V-trace learner step: actor-critic with RMSProp (Espeholt et al. 2018, Section 4.2).

IMPALA has one value output. A multi-task agent has one for each task, of which an unroll trains
that of its own task alone; the policy is the same for all tasks and never sees which one it plays.
What else an agent adds comes as an object: a normaliser of the values, an auxiliary loss.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

import sonnet as snt
import tensorflow as tf

from agents.contract import Network
from agents.impala.config import Config
from agents.impala.lag import LaggedCopy
from agents.impala.losses import baseline_loss, entropy_loss, policy_gradient_loss
from agents.impala.policy import log_probability
from agents.impala.vtrace import corrected_log_probability, importance_weights, vtrace_returns
from agents.masking import masked_mean, mean_age
from agents.networks.language import image_of
from agents.networks.network import RecurrentNetwork, apply_to_rows, unroll_trained_core
from agents.optimization import annealed, clip_by_global_norm, create_slots
from agents.pixel_control import PixelControl
from agents.rewards import transform_reward
from replay.structures import UNKNOWN, Batch, TrainedRows


class Losses(NamedTuple):
    """Sums over the real steps of a batch: scalars."""

    policy_gradient: tf.Tensor
    baseline: tf.Tensor
    entropy: tf.Tensor  # the negative entropy
    pixel_control: tf.Tensor  # 0 where there is none


class Evaluation(NamedTuple):
    """What the network says of a batch's trained rows."""

    loss: tf.Tensor  # []
    losses: Losses
    log_ratio: tf.Tensor  # [L, B], log π / μ of the actions taken
    value: tf.Tensor  # [L, B], in the rewards' own units
    target: tf.Tensor  # [L, B], v, in the rewards' own units


class Normaliser(Protocol):
    """Gives the values of each task a scale of their own. Also a `tf.Module`."""

    def shift_and_scale(self, task: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Tasks `[B]` -> μ and σ, `[B]` each: a value is σ times the network's output, plus μ."""
        ...

    def adapt(self, target: tf.Tensor, mask: tf.Tensor, task: tf.Tensor) -> Mapping[str, tf.Tensor]:
        """Follows the targets `[L, B]` of a batch's real steps, once the optimizer has made its
        step; returns metrics, `[num_tasks]` each."""
        ...


class ImpalaUpdate(tf.Module):
    """One update of a V-trace actor-critic. Implements `agents.contract.Update`.

    Args:
      network: whose parameters are learned; its variables exist.
      config: hyperparameters.
      lagging_network: another of the same make, for actors to fetch, where the config has a policy
        lag; None where actors are to have the newest parameters.
      normaliser: of the values; None takes the network's outputs as they are.
      pixel_control: the auxiliary loss, whose own parameters are learned too; None for none.
    """

    def __init__(
        self,
        network: RecurrentNetwork,
        config: Config,
        *,
        lagging_network: RecurrentNetwork | None = None,
        normaliser: Normaliser | None = None,
        pixel_control: PixelControl | None = None,
    ) -> None:
        super().__init__(name="impala")
        self.learned_network = network
        self.step = tf.Variable(0, dtype=tf.int64, trainable=False, name="step")
        self._config = config
        self._learning_rate = tf.Variable(
            config.learning_rate, trainable=False, dtype=tf.float32, name="learning_rate"
        )
        self._optimizer = snt.optimizers.RMSProp(
            self._learning_rate,
            decay=config.rmsprop_decay,
            momentum=config.rmsprop_momentum,
            epsilon=config.rmsprop_epsilon,
        )
        self._pixel_control = pixel_control
        create_slots(self._optimizer, self._parameters)
        for mean_square in self._optimizer.ms:
            # From 0 the first steps would be tenfold, which can switch units off for good.
            mean_square.assign(tf.ones_like(mean_square))
        self._lagged = (
            LaggedCopy(network, lagging_network, config.policy_lag) if lagging_network else None
        )
        self._normaliser = normaliser
        self.network: Network = lagging_network or network

    @tf.function(autograph=False)
    def __call__(self, batch: Batch) -> tuple[None, Mapping[str, tf.Tensor]]:
        """Improves the parameters; returns no priorities, and metrics."""
        config, parameters = self._config, self._parameters
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
        statistics = self._adapt(batch, evaluation.target)
        self.step.assign_add(1)
        return None, {
            **self._metrics(batch, evaluation),
            **statistics,
            "gradient_norm": norm,
            "learning_rate": learning_rate,
            "parameter_lag": age,
        }

    @property
    def _parameters(self) -> Sequence[tf.Variable]:
        if self._pixel_control is None:
            return self.learned_network.trainable_variables
        return (
            *self.learned_network.trainable_variables,
            *self._pixel_control.trainable_variables,
        )

    def evaluate(self, batch: Batch) -> Evaluation:
        """The loss of a batch. Only the trained rows have a gradient."""
        config = self._config
        reset = batch.reset | batch.life_lost if config.life_loss else batch.reset
        core_output = unroll_trained_core(
            self.learned_network, batch, batch.core_state, reset, config.burn_in
        )
        logits, outputs = apply_to_rows(self.learned_network.head, core_output)
        logits = logits[:-1]  # [L, B, A]; outputs: [L + 1, B, K]
        rows = self._trained(batch)
        log_pi = log_probability(logits, rows.action)  # [L, B]
        log_ratio = tf.stop_gradient(log_pi) - rows.log_probability
        weights = importance_weights(
            log_ratio,
            config.correction,
            rho_bar=config.rho_bar,
            c_bar=config.c_bar,
            lambda_=config.lambda_,
        )
        reward = transform_reward(rows.reward, config.reward_transform)
        # V = σ n + μ: targets are in the rewards' units, losses in those of n.
        shift, scale = self._shift_and_scale(batch.task)  # μ, σ
        output = outputs_of_tasks(outputs, batch.task)  # n, [L + 1, B]
        value = scale * output + shift
        discount = config.discount * self._continuation(rows)
        returns = vtrace_returns(value, reward, discount, weights, rows.mask)
        advantage = (returns.q - shift) / scale - output[:-1]
        log_pi = corrected_log_probability(log_pi, config.correction)
        losses = Losses(
            policy_gradient_loss(log_pi, advantage, weights.policy, rows.mask),
            baseline_loss(output[:-1], (returns.value - shift) / scale, rows.mask),
            entropy_loss(logits, rows.mask),
            self._pixel_control_loss(batch, core_output),
        )
        loss = (
            losses.policy_gradient
            + config.baseline_cost * losses.baseline
            + config.entropy_cost * losses.entropy
            + config.pixel_control_cost * losses.pixel_control
        )
        return Evaluation(loss, losses, log_ratio, value[:-1], returns.value)

    def values_of_task(self, outputs: tf.Tensor, task: int) -> tf.Tensor:
        """The network's value outputs `[N, K]` as V of one task, `[N]`, in the rewards' units."""
        tasks = tf.fill(tf.shape(outputs)[:1], task)
        shift, scale = self._shift_and_scale(tasks)
        return scale * outputs_of_tasks(outputs[tf.newaxis], tasks)[0] + shift

    def _shift_and_scale(self, task: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        if self._normaliser is None:
            return tf.zeros([]), tf.ones([])
        return self._normaliser.shift_and_scale(task)

    def _adapt(self, batch: Batch, target: tf.Tensor) -> Mapping[str, tf.Tensor]:
        if self._normaliser is None:
            return {}
        return self._normaliser.adapt(target, self._trained(batch).mask, batch.task)

    def _pixel_control_loss(self, batch: Batch, core_output: tf.Tensor) -> tf.Tensor:
        if self._pixel_control is None:
            return tf.zeros([])
        images = image_of(batch.inputs.observation)[self._config.burn_in :]
        rows = self._trained(batch)
        return self._pixel_control.loss(
            core_output, images, rows.action, self._continuation(rows), rows.mask
        )

    def _trained(self, batch: Batch) -> TrainedRows:
        return batch.trained(self._config.burn_in)

    def _continuation(self, rows: TrainedRows) -> tf.Tensor:
        """0 on trained rows after which the episode ended, for this learner; 1 elsewhere."""
        if not self._config.life_loss:
            return rows.continuation
        # The life that step t lost is seen on row t + 1.
        nothing = tf.zeros_like(rows.continuation)
        return tf.where(rows.life_lost[1:], nothing, rows.continuation)

    def _age(self, batch: Batch) -> tf.Tensor:
        """Updates since those whose parameters acted: items know when they were fetched."""
        known = tf.not_equal(batch.learner_step, UNKNOWN)
        acted = tf.maximum(batch.learner_step - self._config.policy_lag, 0)
        return mean_age(self.step, tf.where(known, acted, batch.learner_step))

    def _metrics(self, batch: Batch, evaluation: Evaluation) -> Mapping[str, tf.Tensor]:
        mask = self._trained(batch).mask
        ratio = tf.exp(evaluation.log_ratio)
        clipped = tf.cast(ratio > self._config.rho_bar, tf.float32)
        num_steps = tf.maximum(tf.reduce_sum(mask), 1.0)
        auxiliary = {"pixel_control_loss": evaluation.losses.pixel_control}
        return {
            **(auxiliary if self._pixel_control is not None else {}),
            "loss": evaluation.loss,
            "policy_gradient_loss": evaluation.losses.policy_gradient,
            "baseline_loss": evaluation.losses.baseline,
            "entropy": -evaluation.losses.entropy / num_steps,
            "mean_value": masked_mean(evaluation.value, mask),
            "mean_rho": masked_mean(tf.minimum(ratio, self._config.rho_bar), mask),
            "clipped_rho": masked_mean(clipped, mask),
        }


def outputs_of_tasks(outputs: tf.Tensor, task: tf.Tensor) -> tf.Tensor:
    """Each unroll's output for its own task; a single output serves every task.

    Args:
      outputs: `[T, B, K]`.
      task: `[B]`, in 0..K-1 unless K is 1.

    Returns:
      `[T, B]`.
    """
    if outputs.shape[-1] == 1:
        return outputs[..., 0]
    rows = tf.broadcast_to(task, tf.shape(outputs)[:2])
    return tf.gather(outputs, rows, axis=-1, batch_dims=2)
