"""The V-trace learner step: actor-critic with RMSProp (Espeholt et al. 2018, Section 4.2).

IMPALA has one value output. A multi-task agent has one for each task, and an unroll trains its own
task's alone; the policy is the same for all tasks and never sees which one it plays. Other parts of
an agent are objects: a normaliser of the values, an auxiliary loss.
"""

from collections.abc import Mapping, Sequence
from typing import Protocol

import tensorflow as tf

from agents.compilation import update_function
from agents.contract import Network
from agents.impala.config import Config
from agents.impala.distributions import without_last
from agents.impala.vtrace import Evaluation, Outputs, fixed_hyperparameters, vtrace_losses
from agents.masking import mean_age, transform_reward
from agents.networks.network import RecurrentNetwork, apply_to_rows, unroll_trained_core
from agents.networks.parts import image_of
from agents.optimization import RMSProp, annealed, clip_by_global_norm
from agents.pixel_control import PixelControl
from agents.several_learners import current, gradients_of, whole_metrics
from replay.structures import UNKNOWN, Batch, Nest, TrainedRows


class LaggedCopy(tf.Module):
    """Sets the parameters of `copy` to the parameters of `network` `lag` updates ago.

    Before there were that many, they are the initial ones.

        updates of network   0   1   2   3   4        lag = 2
        copy's parameters    0   0   0   1   2
        rows of history     0 0 0 0 0 1 2 1 2 3       row n mod lag is overwritten by update n + 1

    Args:
      network: the one that is updated; its variables exist.
      copy: another of the same make.
      lag: at least 1.
    """

    def __init__(self, network: Network, copy: Network, lag: int) -> None:
        super().__init__(name="lagged_copy")
        self._network = network
        self._copy = copy
        self._lag = lag
        self._history = [
            tf.Variable(tf.zeros([lag, *v.shape]), trainable=False, name="history")
            for v in network.variables
        ]
        self.begin()

    def begin(self) -> None:
        """Takes the network's parameters, as they are, for the initial ones."""
        variables = zip(self._copy.variables, self._network.variables, self._history, strict=True)
        for mine, theirs, history in variables:
            history.assign(tf.stack([theirs] * self._lag))
            mine.assign(theirs)

    def move(self, updates: int) -> None:
        """Goes on where the network's updates are counted so many further; all parameters stay."""
        for history in self._history if updates % self._lag else ():
            history.assign(tf.roll(history, updates % self._lag, axis=0))

    def before_update(self, learner_steps: tf.Tensor) -> None:
        """Remembers the network's parameters, and sets the copy's.

        Args:
          learner_steps: the network's so far, the one that follows excluded.
        """
        write, read = learner_steps % self._lag, (learner_steps + 1) % self._lag
        variables = zip(self._copy.variables, self._network.variables, self._history, strict=True)
        for mine, theirs, history in variables:
            history.scatter_update(tf.IndexedSlices(theirs[tf.newaxis], write[tf.newaxis]))
            mine.assign(history[read])


class Normaliser(Protocol):
    """Gives the values of each task a scale of their own. Also a `tf.Module`."""

    def shift_and_scale(self, task: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Tasks `[B]` -> μ and σ, `[B]` each: a value is σ times the network's output, plus μ."""

    def adapt(self, target: tf.Tensor, mask: tf.Tensor, task: tf.Tensor) -> Mapping[str, tf.Tensor]:
        """Follows the targets `[L, B]` of a batch's real steps, once the optimizer has made its
        step; returns metrics, `[num_tasks]` each."""


class VTraceUpdate(tf.Module):
    """The common part of V-trace learners' updates: `agents.contract.Update` without the call.

    Args:
      name: of the module.
      network: the one that learns; its variables exist.
      config: hyperparameters.
      lagging_network: another of the same make, for actors to fetch, where the config has a policy
        lag; None where actors are to have the newest parameters.
    """

    def __init__(
        self,
        name: str,
        network: RecurrentNetwork,
        config: Config,
        lagging_network: RecurrentNetwork | None,
    ) -> None:
        super().__init__(name=name)
        self.learned_network = network
        self.step = tf.Variable(0, dtype=tf.int64, trainable=False, name="step")
        self._config = config
        self._optimizer = RMSProp(
            self._parameters,
            decay=config.rmsprop_decay,
            momentum=config.rmsprop_momentum,
            epsilon=config.rmsprop_epsilon,
        )
        self._lagged = (
            LaggedCopy(network, lagging_network, config.policy_lag) if lagging_network else None
        )
        self.network: Network = lagging_network or network

    def take_as_initial(self) -> None:
        """Has actors fetch the learned parameters as they are, until a lag of updates is made."""
        if self._lagged is not None:
            self._lagged.begin()

    def count_from(self, learner_steps: int) -> None:
        """Has made so many updates, whatever a checkpoint of another run says."""
        if self._lagged is not None:
            self._lagged.move(learner_steps - int(self.step))
        self.step.assign(learner_steps)

    @property
    def _parameters(self) -> Sequence[tf.Variable]:
        return self.learned_network.trainable_variables

    def _annealed_rate(self) -> tf.Tensor:
        config = self._config
        return annealed(
            config.learning_rate, config.final_learning_rate, self.step, config.annealing_updates
        )

    def _summed(self, gradients: Sequence[tf.Tensor]) -> tuple[Sequence[tf.Tensor], tf.Tensor]:
        """All learners' gradients, clipped, and the norm that they had.

        They are summed, as the loss is one, over batch and time.
        """
        return clip_by_global_norm(current().sum(gradients), self._config.max_gradient_norm)

    def values_of_task(self, outputs: tf.Tensor, task: int) -> tf.Tensor:
        """The network's value outputs `[N, K]` as V of one task, `[N]`, in the rewards' units."""
        tasks = tf.fill(tf.shape(outputs)[:1], task)
        return outputs_of_tasks(outputs[tf.newaxis], tasks)[0]

    def _core_output(self, batch: Batch) -> Nest:
        """The core's outputs on a batch's trained rows and the last, `[L + 1, B, H]`."""
        config = self._config
        reset = batch.reset | batch.life_lost if config.life_loss else batch.reset
        return unroll_trained_core(
            self.learned_network, batch, batch.core_state, reset, config.burn_in
        )

    def _trained_rows(self, batch: Batch) -> TrainedRows:
        """The trained rows, with the rewards and the episodes' ends that this learner sees."""
        rows = batch.trained(self._config.burn_in)
        rows = rows._replace(reward=transform_reward(rows.reward, self._config.reward_transform))
        if not self._config.life_loss:
            return rows
        # The life that step t lost is seen on row t + 1.
        nothing = tf.zeros_like(rows.continuation)
        return rows._replace(continuation=tf.where(rows.life_lost[1:], nothing, rows.continuation))

    def _parameter_lag(self, batch: Batch) -> tf.Tensor:
        """The age of the parameters that acted, in updates, on average.

        Items know when they were fetched; a policy lag had made them older than that.
        """
        known = tf.not_equal(batch.learner_step, UNKNOWN)
        acted = tf.maximum(batch.learner_step - self._config.policy_lag, 0)
        return mean_age(self.step, tf.where(known, acted, batch.learner_step))


class ImpalaUpdate(VTraceUpdate):
    """One update of an actor-critic with a value for all tasks, or one for each.

    Args:
      network: as for `VTraceUpdate`; so are `config` and `lagging_network`.
      normaliser: of the values; None takes the network's outputs as they are.
      pixel_control: the auxiliary loss, with parameters that are learned too; None for none.
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
        self._pixel_control = pixel_control
        super().__init__("impala", network, config, lagging_network)
        # A variable because checkpoints hold it; each update computes it anew.
        self._learning_rate = tf.Variable(
            config.learning_rate, trainable=False, dtype=tf.float32, name="learning_rate"
        )
        self._normaliser = normaliser

    @update_function
    def __call__(self, batch: Batch) -> tuple[None, Mapping[str, tf.Tensor]]:
        """Improves the parameters; returns no priorities, and metrics."""
        parameters = self._parameters
        with tf.GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(parameters)
            evaluation = self.evaluate(batch)
        gradients = gradients_of(evaluation.loss, parameters, tape)
        gradients, norm = self._summed(gradients)
        if self._lagged is not None:
            self._lagged.before_update(self.step)
        learning_rate = self._annealed_rate()
        self._learning_rate.assign(learning_rate)
        age = self._parameter_lag(batch)
        self._optimizer.apply(gradients, parameters, self._learning_rate)
        statistics = self._adapt(batch, evaluation.target)
        self.step.assign_add(1)
        metrics = {"loss": evaluation.loss, **evaluation.metrics, "parameter_lag": age}
        return None, {
            **whole_metrics(metrics, is_sum),
            **statistics,
            "gradient_norm": norm,
            "learning_rate": learning_rate,
        }

    @property
    def _parameters(self) -> Sequence[tf.Variable]:
        if self._pixel_control is None:
            return self.learned_network.trainable_variables
        return (*self.learned_network.trainable_variables, *self._pixel_control.trainable_variables)

    def evaluate(self, batch: Batch) -> Evaluation:
        """The loss of a batch. Only the trained rows have a gradient."""
        config = self._config
        core_output = self._core_output(batch)
        policy, outputs = apply_to_rows(self.learned_network.head, core_output)
        output = outputs_of_tasks(outputs, batch.task)  # [L + 1, B]
        rows = self._trained_rows(batch)
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
        shift, scale = self._shift_and_scale(tf.fill(tf.shape(outputs)[:1], task))
        return scale * super().values_of_task(outputs, task) + shift

    def _shift_and_scale(self, task: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        if self._normaliser is None:
            return tf.zeros([]), tf.ones([])
        return self._normaliser.shift_and_scale(task)

    def _adapt(self, batch: Batch, target: tf.Tensor) -> Mapping[str, tf.Tensor]:
        if self._normaliser is None:
            return {}
        return self._normaliser.adapt(target, batch.mask[self._config.burn_in :], batch.task)


def is_sum(metric: str) -> bool:
    """Returns whether a V-trace learner's metric is a sum over the batch; others are means."""
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
