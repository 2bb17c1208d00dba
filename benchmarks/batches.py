"""Synthetic batches: of an agent's own layout, full of noise, without padding."""

import numpy as np
import tensorflow as tf
import tree

from benchmarks.subject import Subject
from replay.structures import Batch, Nest, NetworkInput

_SEED = 0
_TABLE_SIZE = 100_000


def synthetic(subject: Subject) -> Batch:
    """One batch of whole items in which no episode begins or ends: every row is trained.

    The frames are noise. What a step costs does not depend on them, unless they make numbers
    denormal, and these do not.
    """
    agent, spec = subject.agent, subject.spec
    layout, size = agent.tables[0].layout, agent.batch_size
    num_steps = layout.burn_in + layout.length
    num_actions = spec.actions.num_values
    rng = np.random.default_rng(_SEED)

    def integers(high: int, shape: list[int], dtype: tf.DType) -> tf.Tensor:
        return tf.constant(rng.integers(high, size=shape), dtype)

    def rewards(rows: int) -> tf.Tensor:
        return tf.constant(rng.normal(size=[rows, size]), tf.float32)

    def none(rows: int) -> tf.Tensor:
        return tf.zeros([rows, size], tf.bool)

    state = agent.make_network(spec).initial_state(size)
    return Batch(
        inputs=NetworkInput(
            observation=tf.constant(
                rng.integers(256, size=[num_steps + 1, size, *subject.image], dtype=np.uint8)
            ),
            previous_action=integers(num_actions, [num_steps + 1, size], tf.int32),
            previous_reward=rewards(num_steps + 1),
        ),
        reset=none(num_steps + 1),
        valid=~none(num_steps + 1),
        life_lost=none(num_steps + 1),
        action=integers(num_actions, [num_steps, size], tf.int32),
        log_probability=tf.fill([num_steps, size], -float(np.log(num_actions))),
        reward=rewards(num_steps),
        continuation=tf.ones([num_steps, size]),
        mask=tf.ones([num_steps, size]),
        core_state=_small_noise(state, rng),
        key=tf.constant(np.arange(size), tf.uint64),
        shard=tf.zeros([size], tf.int32),
        probability=tf.fill([size], tf.constant(1 / _TABLE_SIZE, tf.float64)),
        table_size=tf.fill([size], tf.constant(_TABLE_SIZE, tf.int64)),
        learner_step=tf.zeros([size], tf.int64),
        task=integers(subject.num_tasks, [size], tf.int64),
        actor=tf.zeros([size], tf.int64),
        agent=tf.zeros([size], tf.int64),
    )


def _small_noise(state: Nest, rng: np.random.Generator) -> Nest:
    return tree.map_structure(
        lambda x: tf.constant(rng.normal(scale=0.1, size=x.shape), tf.float32), state
    )
