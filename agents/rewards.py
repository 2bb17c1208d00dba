"""What a learner makes of the raw rewards in the stream."""

import tensorflow as tf

from agents.choices import RewardTransform


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
