"""What learner and actor must compute alike: an item's targets, and its priority from them."""

from collections.abc import Callable

import numpy as np
import tensorflow as tf

from agents.rewards import transform_reward
from r2d2.config import Config
from r2d2.returns import h, h_inverse, n_step_returns
from replay.priorities import mixed_priorities
from replay.structures import PriorityInput


def item_targets(
    config: Config,
    value: tf.Tensor,
    reward: tf.Tensor,
    continuation: tf.Tensor,
    life_lost: tf.Tensor,
    mask: tf.Tensor,
) -> tf.Tensor:
    """The targets of an item's trained rows, from what the stream holds (Section 2.3).

        y_t = h(Σ_{k<m} γ^k r_{t+k} + γ^m h⁻¹(v_{t+m}))

    Args:
      config: says how rewards, lost lives and values are treated.
      value: `[L + 1, B]`, v: what each row would be bootstrapped with.
      reward: `[L, B]` raw.
      continuation: `[L, B]` 0 or 1.
      life_lost: `[L + 1, B]` bool: a life was lost between the row before and this one.
      mask: `[L, B]` 1 on real steps.

    Returns:
      y, `[L, B]`; m and the rows that mean nothing are those of `n_step_returns`.
    """
    discount = config.discount * continuation
    if config.life_loss != "none":
        # The life that step t lost is seen on row t + 1.
        discount = tf.where(life_lost[1:], tf.zeros_like(discount), discount)
    reward = transform_reward(reward, config.reward_transform)
    if not config.rescale:
        return n_step_returns(value, reward, discount, mask, config.n_step)
    value = h_inverse(value, config.rescaling_epsilon)
    returns = n_step_returns(value, reward, discount, mask, config.n_step)
    return h(returns, config.rescaling_epsilon)


def make_initial_priority(config: Config) -> Callable[[PriorityInput], np.ndarray]:
    """How an actor computes first priorities `[M]` of M items.

    The actor's own parameters stand for online and target network both, so the double-Q value of a
    row is its largest action value.
    """
    rows = tf.TensorSpec([None, None], tf.float32)
    flags = tf.TensorSpec([None, None], tf.bool)

    @tf.function(input_signature=[rows, rows, rows, rows, flags, rows], autograph=False)
    def priorities(
        q_taken: tf.Tensor,
        q_max: tf.Tensor,
        reward: tf.Tensor,
        continuation: tf.Tensor,
        life_lost: tf.Tensor,
        mask: tf.Tensor,
    ) -> tf.Tensor:
        targets = item_targets(config, q_max, reward, continuation, life_lost, mask)
        return mixed_priorities(tf.abs(targets - q_taken[:-1]), mask, config.eta)

    def initial_priority(items: PriorityInput) -> np.ndarray:
        q_taken, q_max = items.values["q_taken"], items.values["q_max"]  # [L + 1, M]
        return priorities(
            q_taken, q_max, items.reward, items.continuation, items.life_lost, items.mask
        ).numpy()

    return initial_priority
