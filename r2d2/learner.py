"""R2D2's learner step: burn-in, n-step double Q-learning, Adam, new priorities."""

from collections.abc import Mapping
from typing import NamedTuple

import tensorflow as tf

from agents.compilation import update_function
from agents.masking import masked_mean, mean_age, zero_where_masked
from agents.networks.network import RecurrentNetwork, unroll_trained
from agents.optimization import Adam, create_slots
from agents.prioritized import batch_weights
from agents.several_learners import gradients_of, mean, whole_metrics
from r2d2.config import Config
from r2d2.network import JointActions
from r2d2.targets import double_q_values, item_targets
from replay.priorities import mixed_priorities
from replay.structures import Batch, Nest


class Evaluation(NamedTuple):
    """The networks' view of a batch's trained rows."""

    loss: tf.Tensor  # []
    q_taken: tf.Tensor  # [L, B]
    targets: tf.Tensor  # [L, B]
    metrics: Mapping[str, tf.Tensor] = {}  # [] each, of the loss alone


def q_learning_loss(
    q_taken: tf.Tensor, targets: tf.Tensor, mask: tf.Tensor, weights: tf.Tensor
) -> tf.Tensor:
    """The squared error, summed over an item's real steps, averaged over the batch.

        1/B Σ_b w_b Σ_t ½ mask_tb (y_tb − Q(s_tb, a_tb))²

    The paper does not say whether to sum or average over time. With the sum, every real step weighs
    the same whatever its item's length, and gradients are of a size that suits Table 2's ε of Adam,
    1e-3, and a clip at 40; a mean over 80 steps would leave ε larger than most of them.

    Args:
      q_taken: `[L, B]`, Q(s, a).
      targets: `[L, B]`, y; no gradient flows into them.
      mask: `[L, B]`, 1 on real steps.
      weights: `[B]`, importance weights.

    Returns:
      A scalar.
    """
    tf.debugging.assert_shapes(
        [(q_taken, ("L", "B")), (targets, ("L", "B")), (mask, ("L", "B")), (weights, ("B",))]
    )
    error = zero_where_masked(tf.stop_gradient(targets) - q_taken, mask)
    return tf.reduce_mean(weights * 0.5 * tf.reduce_sum(tf.square(error), axis=0))


class R2D2Update(tf.Module):
    """One R2D2 update. Implements `agents.contract.Update`.

    Args:
      network: the one that learns; its variables exist.
      target_network: another of the same make; it starts with the same parameters.
      config: hyperparameters.
    """

    def __init__(
        self, network: RecurrentNetwork, target_network: RecurrentNetwork, config: Config
    ) -> None:
        super().__init__(name="r2d2")
        self.network = network
        self.target_network = target_network
        self.step = tf.Variable(0, dtype=tf.int64, trainable=False, name="step")
        self._config = config
        self._joint = JointActions(network.actions)
        self._optimizer = Adam(config.learning_rate, epsilon=config.adam_epsilon)
        create_slots(self._optimizer, network.trainable_variables)
        self._copy_to_target()

    @update_function
    def __call__(self, batch: Batch) -> tuple[tf.Tensor, Mapping[str, tf.Tensor]]:
        """Improves the parameters; returns the items' new priorities `[B]` and metrics."""
        parameters = self.network.trainable_variables
        with tf.GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(parameters)
            evaluation = self.evaluate(batch)
        gradients = mean(gradients_of(evaluation.loss, parameters, tape))
        gradients, norm = tf.clip_by_global_norm(gradients, self._config.max_gradient_norm)
        lag = mean_age(self.step, batch.learner_step)
        self._optimizer.apply(gradients, parameters)
        self._follow(evaluation)

        mask = batch.trained(self._config.burn_in).mask
        abs_td = tf.abs(evaluation.targets - evaluation.q_taken)
        priorities = mixed_priorities(abs_td, mask, self._config.eta)
        metrics = {
            "loss": evaluation.loss,
            "gradient_norm": norm,
            "mean_q": masked_mean(evaluation.q_taken, mask),
            "mean_target": masked_mean(evaluation.targets, mask),
            "mean_abs_td": masked_mean(abs_td, mask),
            "mean_priority": tf.reduce_mean(priorities),
            "parameter_lag": lag,
            **evaluation.metrics,
        }
        return priorities, whole_metrics(metrics, lambda name: False)

    def evaluate(self, batch: Batch) -> Evaluation:
        """The loss of a batch. Only the online network's trained rows have a gradient."""
        state, reset = self._initial_state(batch), self._resets(batch)
        arguments = (batch, state, reset, self._config.burn_in)
        online_q = unroll_trained(self.network, *arguments, learns=True)
        target_q = unroll_trained(self.target_network, *arguments, learns=False)
        return self._compare(online_q, target_q, batch)

    def _compare(self, online_q: tf.Tensor, target_q: tf.Tensor, batch: Batch) -> Evaluation:
        """The loss of both networks' values `[L + 1, B, A]` of a batch's trained rows."""
        config = self._config
        rows = batch.trained(config.burn_in)
        index = self._joint.index(rows.action)
        q_taken = tf.gather(online_q[:-1], index, axis=-1, batch_dims=2)  # [L, B]
        value = double_q_values(online_q, target_q)  # [L + 1, B]
        targets = item_targets(
            config, value, rows.reward, rows.continuation, rows.life_lost, rows.mask
        )
        loss = q_learning_loss(
            q_taken, targets, rows.mask, batch_weights(batch, config.importance_exponent)
        )
        return Evaluation(loss, q_taken, targets)

    def _initial_state(self, batch: Batch) -> Nest:
        if self._config.stored_state:
            return batch.core_state
        return self.network.initial_state(tf.shape(batch.action)[1])

    def _resets(self, batch: Batch) -> tf.Tensor:
        if self._config.life_loss == "reset":
            return batch.reset | batch.life_lost
        return batch.reset

    def _follow(self, evaluation: Evaluation) -> None:
        """Counts an update, and changes what goes on beside the parameters."""
        self.step.assign_add(1)
        tf.cond(
            self.step % self._config.target_update_period == 0, self._copy_to_target, lambda: None
        )

    def _copy_to_target(self) -> None:
        for target, online in zip(
            self.target_network.variables, self.network.variables, strict=True
        ):
            target.assign(online)
