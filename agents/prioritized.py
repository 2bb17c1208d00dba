"""What agents share that learn from prioritized items within one episode."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from agents.several_learners import current
from replay.priorities import importance_weights, mixed_priorities
from replay.structures import Batch, PriorityInput, TableSpec


def prioritized_table(name: str, config: Any) -> TableSpec:
    """The table of an agent's config, which has the fields that are read here."""
    return TableSpec(
        name=name,
        kind="prioritized",
        layout=config.layout,
        max_size=config.replay_size,
        min_size=config.min_replay_size,
        samples_per_insert=config.samples_per_insert,
        priority_exponent=config.priority_exponent,
    )


def n_step_returns(
    value: tf.Tensor, reward: tf.Tensor, discount: tf.Tensor, mask: tf.Tensor, n: int
) -> tf.Tensor:
    """n-step returns within an item (Kapturowski et al. 2019, Section 2.3, inside h).

        G_t = r_t + γ_t r_{t+1} + … + γ_t ⋯ γ_{t+m−2} r_{t+m−1} + γ_t ⋯ γ_{t+m−1} v_{t+m}

    m is n, or fewer where the item's real steps end sooner: the bootstrap then is the row right
    after the last real step, be it the item's last row or one that padding follows.

    Args:
      value: `[L + 1, B]`, v_t: the value of row t.
      reward: `[L, B]`, r_t: the one that followed the action of row t.
      discount: `[L, B]`, γ_t: of row t + 1 as seen from row t; 0 where the environment terminated.
      mask: `[L, B]`, 1 on real steps.
      n: the largest number of rewards.

    Returns:
      G, `[L, B]`; on rows that are no real steps it means nothing.
    """
    tf.debugging.assert_shapes(
        [(value, ("K", "B")), (reward, ("L", "B")), (discount, ("L", "B")), (mask, ("L", "B"))]
    )
    real = mask > 0
    returns = value  # the 0-step return of every row
    # A k-step return is one reward and the (k-1)-step return of the next row; a row without a real
    # step has no reward to add, so there every return is the value, and so is the last row's.
    for _ in range(n):
        longer = tf.where(real, reward + discount * returns[1:], value[:-1])
        returns = tf.concat([longer, value[-1:]], axis=0)  # [L + 1, B]
    return returns[:-1]


def batch_weights(batch: Batch, exponent: float) -> tf.Tensor:
    """The weights of this learner's items `[B]`; the largest among all learners' is 1.

    Where learners sample shards of their own, a table has the items of all of them together. A
    common factor of their probabilities and sizes does not matter.

    Args:
      batch: of this learner.
      exponent: β, as `importance_weights` takes it.
    """
    learners = current()
    if learners.size == 1:
        return importance_weights(batch.probability, batch.table_size, exponent)
    sizes = tf.reshape(learners.gather(batch.table_size), [learners.size, -1])
    weights = importance_weights(
        learners.gather(batch.probability),
        tf.tile(tf.reduce_sum(sizes, axis=0), [learners.size]),
        exponent,
    )
    return tf.reshape(weights, [learners.size, -1])[learners.rank]


def make_initial_priority(
    config: Any, names: Sequence[str], targets_of: Callable[..., tf.Tensor]
) -> Callable[[PriorityInput], np.ndarray]:
    """Makes an actor's function for the first priorities `[M]` of M items.

    The actor's own parameters stand for online and target network both.

    Args:
      config: of an agent, with a field `eta`.
      names: of the policy's values that make targets; it has `q_taken` besides.
      targets_of: (config, those values `[L + 1, M]`, then reward `[L, M]`, continuation `[L, M]`,
        life_lost `[L + 1, M]`, mask `[L, M]`) -> targets `[L, M]`.
    """
    rows = tf.TensorSpec([None, None], tf.float32)
    stream = [rows, rows, tf.TensorSpec([None, None], tf.bool), rows]

    @tf.function(input_signature=[rows, [rows] * len(names), stream], autograph=False)
    def priorities(
        q_taken: tf.Tensor, values: list[tf.Tensor], stream: list[tf.Tensor]
    ) -> tf.Tensor:
        targets = targets_of(config, *values, *stream)
        return mixed_priorities(tf.abs(targets - q_taken[:-1]), stream[-1], config.eta)

    def initial_priority(items: PriorityInput) -> np.ndarray:
        values = [items.values[name] for name in names]  # [L + 1, M] each
        stream = [items.reward, items.continuation, items.life_lost, items.mask]
        with tf.device("CPU"):  # which has made these few numbers before a GPU is told of them
            return priorities(items.values["q_taken"], values, stream).numpy()

    return initial_priority
