"""R2D2's learner step: burn-in, n-step double Q-learning, Adam, new priorities."""

from collections.abc import Mapping
from typing import NamedTuple

import sonnet as snt
import tensorflow as tf
import tree

from agents.networks import RecurrentNetwork
from r2d2.config import Config
from r2d2.returns import double_q_values
from r2d2.targets import item_targets
from replay.priorities import importance_weights, mixed_priorities
from replay.structures import Batch, Nest, NetworkInput


class Rows(NamedTuple):
    """What an unroll needs of some consecutive rows."""

    inputs: NetworkInput  # [K, B, ...]
    reset: tf.Tensor  # [K, B] bool
    valid: tf.Tensor  # [K, B] bool

    def part(self, start: int | None, stop: int | None) -> "Rows":
        """The rows from `start` up to `stop`."""
        return tree.map_structure(lambda x: x[start:stop], self)


class Evaluation(NamedTuple):
    """What the networks say of a batch's trained rows."""

    loss: tf.Tensor  # []
    q_taken: tf.Tensor  # [L, B]
    targets: tf.Tensor  # [L, B]


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
    error = tf.where(mask > 0, tf.stop_gradient(targets) - q_taken, tf.zeros_like(q_taken))
    return tf.reduce_mean(weights * 0.5 * tf.reduce_sum(tf.square(error), axis=0))


class R2D2Update(tf.Module):
    """One R2D2 update. Implements `agents.contract.Update`.

    Args:
      network: whose parameters are learned; its variables exist.
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
        self._optimizer = snt.optimizers.Adam(config.learning_rate, epsilon=config.adam_epsilon)
        self._create_optimizer_slots()
        self._copy_to_target()

    @tf.function(autograph=False)
    def __call__(self, batch: Batch) -> tuple[tf.Tensor, Mapping[str, tf.Tensor]]:
        """Improves the parameters; returns the items' new priorities `[B]` and metrics."""
        parameters = self.network.trainable_variables
        with tf.GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(parameters)
            evaluation = self.evaluate(batch)
        gradients = tape.gradient(evaluation.loss, parameters)
        gradients, norm = tf.clip_by_global_norm(gradients, self._config.max_gradient_norm)
        age = self.step - batch.learner_step
        self._optimizer.apply(gradients, parameters)
        self._count()

        mask = batch.mask[self._config.burn_in :]
        abs_td = tf.abs(evaluation.targets - evaluation.q_taken)
        priorities = mixed_priorities(abs_td, mask, self._config.eta)
        return priorities, {
            "loss": evaluation.loss,
            "gradient_norm": norm,
            "mean_q": _masked_mean(evaluation.q_taken, mask),
            "mean_target": _masked_mean(evaluation.targets, mask),
            "mean_abs_td": _masked_mean(abs_td, mask),
            "mean_priority": tf.reduce_mean(priorities),
            "parameter_lag": tf.reduce_mean(tf.cast(age, tf.float32)),
        }

    def evaluate(self, batch: Batch) -> Evaluation:
        """The loss of a batch. Only the online network's trained rows have a gradient."""
        config = self._config
        rows = Rows(batch.inputs, self._resets(batch), batch.valid)
        online_q = self._q_values(self.network, batch, rows)  # [L + 1, B, A]
        target_q = self._q_values(self.target_network, batch, rows)

        action, reward, continuation, mask, life_lost = (
            x[config.burn_in :]
            for x in (batch.action, batch.reward, batch.continuation, batch.mask, batch.life_lost)
        )
        q_taken = tf.gather(online_q[:-1], action, axis=-1, batch_dims=2)  # [L, B]
        value = double_q_values(online_q, target_q)  # [L + 1, B]
        targets = item_targets(config, value, reward, continuation, life_lost, mask)
        weights = importance_weights(
            batch.probability, batch.table_size, config.importance_exponent
        )
        loss = q_learning_loss(q_taken, targets, mask, weights)
        return Evaluation(loss, q_taken, targets)

    def _q_values(self, network: RecurrentNetwork, batch: Batch, rows: Rows) -> tf.Tensor:
        """Action values of the trained rows and the last, `[L + 1, B, A]`, after an own burn-in."""
        burn_in = self._config.burn_in
        state = self._initial_state(batch)
        if burn_in:
            first = rows.part(None, burn_in)
            state = network.warm_up(first.inputs, state, first.reset, first.valid)
            state = tree.map_structure(tf.stop_gradient, state)
        trained = rows.part(burn_in, None)
        return network.unroll(trained.inputs, state, trained.reset, trained.valid)[0]

    def _initial_state(self, batch: Batch) -> Nest:
        if self._config.stored_state:
            return batch.core_state
        return self.network.initial_state(tf.shape(batch.action)[1])

    def _resets(self, batch: Batch) -> tf.Tensor:
        if self._config.life_loss == "reset":
            return batch.reset | batch.life_lost
        return batch.reset

    def _count(self) -> None:
        self.step.assign_add(1)
        tf.cond(
            self.step % self._config.target_update_period == 0,
            self._copy_to_target,
            lambda: None,
        )

    def _copy_to_target(self) -> None:
        for target, online in zip(
            self.target_network.variables, self.network.variables, strict=True
        ):
            target.assign(online)

    def _create_optimizer_slots(self) -> None:
        """Makes Adam's moments now, for a checkpoint to find them: a step of zeros, uncounted."""
        parameters = self.network.trainable_variables
        self._optimizer.apply([tf.zeros_like(p) for p in parameters], parameters)
        self._optimizer.step.assign(0)


def _masked_mean(x: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
    real = tf.where(mask > 0, x, tf.zeros_like(x))
    return tf.reduce_sum(real) / tf.maximum(tf.reduce_sum(mask), 1.0)
