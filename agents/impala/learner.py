"""The V-trace learner step: actor-critic with RMSProp (Espeholt et al. 2018, Section 4.2).

IMPALA has one value output. A multi-task agent has one for each task, of which an unroll trains
that of its own task alone; the policy is the same for all tasks and never sees which one it plays.
What else an agent adds comes as an object: a normaliser of the values, an auxiliary loss.
"""

from collections.abc import Mapping, Sequence
from typing import Protocol

import tensorflow as tf

from agents.compilation import update_function
from agents.contract import Network
from agents.impala.config import Config
from agents.impala.distributions import without_last
from agents.impala.lag import LaggedCopy
from agents.impala.losses import Evaluation, Outputs, fixed_hyperparameters, vtrace_losses
from agents.impala.rows import parameter_lag, resets, trained_rows
from agents.networks.network import RecurrentNetwork, apply_to_rows, unroll_trained_core
from agents.networks.parts import image_of
from agents.optimization import RMSProp, annealed, clip_by_global_norm
from agents.peers import ALONE, Peers, whole_metrics
from agents.pixel_control import PixelControl
from replay.structures import Batch


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
      peers: the learners that each see a part of every batch; the normaliser has the same.
    """

    def __init__(
        self,
        network: RecurrentNetwork,
        config: Config,
        *,
        lagging_network: RecurrentNetwork | None = None,
        normaliser: Normaliser | None = None,
        pixel_control: PixelControl | None = None,
        peers: Peers = ALONE,
    ) -> None:
        super().__init__(name="impala")
        self.learned_network = network
        self.step = tf.Variable(0, dtype=tf.int64, trainable=False, name="step")
        self._config = config
        self.peers = peers
        # A variable because checkpoints hold it; each update computes it anew.
        self._learning_rate = tf.Variable(
            config.learning_rate, trainable=False, dtype=tf.float32, name="learning_rate"
        )
        self._pixel_control = pixel_control
        self._optimizer = RMSProp(
            self._parameters,
            decay=config.rmsprop_decay,
            momentum=config.rmsprop_momentum,
            epsilon=config.rmsprop_epsilon,
        )
        self._lagged = (
            LaggedCopy(network, lagging_network, config.policy_lag) if lagging_network else None
        )
        self._normaliser = normaliser
        self.network: Network = lagging_network or network

    @update_function
    def __call__(self, batch: Batch) -> tuple[None, Mapping[str, tf.Tensor]]:
        """Improves the parameters; returns no priorities, and metrics."""
        config, parameters = self._config, self._parameters
        with tf.GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(parameters)
            evaluation = self.evaluate(batch)
        gradients = tape.gradient(
            evaluation.loss, parameters, unconnected_gradients=tf.UnconnectedGradients.ZERO
        )
        gradients = self.peers.sum(gradients)  # as the loss is one, over batch and time
        gradients, norm = clip_by_global_norm(gradients, config.max_gradient_norm)
        if self._lagged is not None:
            self._lagged.before_update(self.step)
        learning_rate = annealed(
            config.learning_rate, config.final_learning_rate, self.step, config.annealing_updates
        )
        self._learning_rate.assign(learning_rate)
        age = parameter_lag(batch, config, self.step)
        self._optimizer.apply(gradients, parameters, self._learning_rate)
        statistics = self._adapt(batch, evaluation.target)
        self.step.assign_add(1)
        metrics = {"loss": evaluation.loss, **evaluation.metrics, "parameter_lag": age}
        return None, {
            **whole_metrics(self.peers, metrics, is_sum),
            **statistics,
            "gradient_norm": norm,
            "learning_rate": learning_rate,
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
        core_output = unroll_trained_core(
            self.learned_network, batch, batch.core_state, resets(batch, config), config.burn_in
        )
        policy, outputs = apply_to_rows(self.learned_network.head, core_output)
        output = outputs_of_tasks(outputs, batch.task)  # [L + 1, B]
        rows = trained_rows(batch, config)
        evaluation = vtrace_losses(
            Outputs(without_last(policy), output, *self._shift_and_scale(batch.task)),
            rows,
            fixed_hyperparameters(config),
            config.correction,
        )
        if self._pixel_control is None:
            return evaluation
        images = image_of(batch.inputs.observation)[config.burn_in :]
        auxiliary = self._pixel_control.loss(
            core_output, images, rows.action, rows.continuation, rows.mask
        )
        return evaluation._replace(
            loss=evaluation.loss + config.pixel_control_cost * auxiliary,
            metrics={"pixel_control_loss": auxiliary, **evaluation.metrics},
        )

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
        return self._normaliser.adapt(target, batch.mask[self._config.burn_in :], batch.task)


def is_sum(metric: str) -> bool:
    """Whether a V-trace learner's metric is a sum over the batch; the others are means."""
    return metric.endswith("loss") or metric == "kl"


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
