"""What a V-trace learner sees of a batch: its rewards, its episodes' ends, how old it is."""

import tensorflow as tf

from agents.impala.config import Config
from agents.masking import mean_age
from agents.rewards import transform_reward
from replay.structures import UNKNOWN, Batch, TrainedRows


def resets(batch: Batch, config: Config) -> tf.Tensor:
    """`[T + 1, B]` bool, the rows before which the core state becomes the initial one."""
    return batch.reset | batch.life_lost if config.life_loss else batch.reset


def trained_rows(batch: Batch, config: Config) -> TrainedRows:
    """The trained rows, with the rewards and the episodes' ends that this learner sees."""
    rows = batch.trained(config.burn_in)
    rows = rows._replace(reward=transform_reward(rows.reward, config.reward_transform))
    if not config.life_loss:
        return rows
    # The life that step t lost is seen on row t + 1.
    nothing = tf.zeros_like(rows.continuation)
    return rows._replace(continuation=tf.where(rows.life_lost[1:], nothing, rows.continuation))


def parameter_lag(batch: Batch, config: Config, learner_steps: tf.Tensor) -> tf.Tensor:
    """Updates since those whose parameters acted, on average: items know when they were fetched.

    Args:
      batch: whose items these are.
      config: `policy_lag` makes the parameters older than when they were fetched.
      learner_steps: that the learner has made.
    """
    known = tf.not_equal(batch.learner_step, UNKNOWN)
    acted = tf.maximum(batch.learner_step - config.policy_lag, 0)
    return mean_age(learner_steps, tf.where(known, acted, batch.learner_step))
