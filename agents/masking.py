"""Rows as learners read them: masked sums and means, transformed rewards, ages.

The contents of masked rows, NaN too, are ignored.
"""

import tensorflow as tf

from agents.requirements import RewardTransform
from replay.structures import UNKNOWN


def zero_where_masked(x: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
    """`x` where `mask`, of the same shape, is 1; 0 where it is 0."""
    return tf.where(mask > 0, x, tf.zeros_like(x))


def masked_sum(x: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
    """The sum of `x` over the elements with a `mask` of 1."""
    return tf.reduce_sum(zero_where_masked(x, mask))


def masked_mean(x: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
    """The mean of `x` over the elements with a `mask` of 1; 0 if there are none."""
    return masked_sum(x, mask) / tf.maximum(tf.reduce_sum(mask), 1.0)


def mean_age(learner_steps: tf.Tensor, learner_step: tf.Tensor) -> tf.Tensor:
    """The mean age of the parameters that acted, in updates, over the items that know it.

    Args:
      learner_steps: the learner's so far, int64.
      learner_step: `[B]` int64, of the oldest parameters; `UNKNOWN` where another agent acted.

    Returns:
      A float32 scalar; 0 if no item knows.
    """
    age = tf.cast(learner_steps - learner_step, tf.float32)
    return masked_mean(age, tf.cast(tf.not_equal(learner_step, UNKNOWN), tf.float32))


def transform_reward(reward: tf.Tensor, kind: RewardTransform) -> tf.Tensor:
    """Transforms single rewards of any shape.

    clip:        min(max(r, −1), 1)
    asymmetric:  0.3 min(tanh r, 0) + 5 max(tanh r, 0)    (Espeholt et al. 2018, Figure C.1)
    """
    if kind == "clip":
        return tf.clip_by_value(reward, -1.0, 1.0)
    if kind == "asymmetric":
        squashed = tf.tanh(reward)
        return 0.3 * tf.minimum(squashed, 0.0) + 5.0 * tf.maximum(squashed, 0.0)
    return reward
