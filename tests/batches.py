"""Random batches, and the spec of the environment they could have come from."""

from typing import Any, Protocol

import numpy as np
import tensorflow as tf
import tree
from acme import specs

from agents.networks.core import make_core
from replay.structures import NO_ACTION, Batch, Nest, NetworkInput

NUM_ACTIONS = 3
OBSERVATION_SIZE = 5
VECTORS = specs.BoundedArray((2,), np.float32, [-1, 2], [1, 6], "action")


def environment_spec(
    shape: tuple[int, ...] = (OBSERVATION_SIZE,),
    dtype: type = np.float32,
    num_actions: int = NUM_ACTIONS,
) -> specs.EnvironmentSpec:
    """The spec of an environment whose observation is one array."""
    return specs.EnvironmentSpec(
        observations=specs.Array(shape, dtype, "observation"),
        actions=specs.DiscreteArray(num_actions, name="action"),
        rewards=specs.Array((), np.float32, "reward"),
        discounts=specs.BoundedArray((), np.float32, 0.0, 1.0, "discount"),
    )


def acts_by_vectors(config: Any) -> bool:
    """Whether an agent of this Config takes actions that are vectors, and no others."""
    return hasattr(config, "target_entropy")


def with_actions_of(config: Any, spec: specs.EnvironmentSpec) -> specs.EnvironmentSpec:
    """The spec of an environment, with vectors for actions where an agent needs those."""
    return spec._replace(actions=VECTORS) if acts_by_vectors(config) else spec


class Sizes(Protocol):
    """The fields of an agent's Config that shape a batch."""

    @property
    def burn_in(self) -> int: ...
    @property
    def length(self) -> int: ...
    @property
    def batch_size(self) -> int: ...
    @property
    def lstm_size(self) -> int: ...
    @property
    def core(self) -> str: ...


def core_state(
    lstm_size: int, batch_size: int, rng: np.random.Generator, core: str = "lstm"
) -> Nest:
    """A random recurrent state, `[B, H]` for each of a core's vectors."""
    zeros = make_core(lstm_size, kind=core).initial_state(batch_size)
    return tree.map_structure(
        lambda x: tf.constant(rng.normal(size=x.shape) / 2, tf.float32), zeros
    )


def random_batch(
    config: Sizes,
    seed: int = 0,
    *,
    num_real: list[int] | None = None,
    padding: list[int] | None = None,
    terminated: list[bool] | None = None,
    reward_scale: float = 2.0,
) -> Batch:
    """Items of random content, as the dataset would shape them.

    Args:
      num_real: `[B]` real steps of each item, burn-in included; all there is room for by default.
      padding: `[B]` masked rows before the first real one; none by default.
      terminated: `[B]` whether the environment terminated after the last real step.
      reward_scale: standard deviation of the rewards.
    """
    rng = np.random.default_rng(seed)
    num_steps, size = config.burn_in + config.length, config.batch_size
    padding_ = np.array(padding if padding is not None else [0] * size)
    real = np.array(num_real) if num_real is not None else num_steps - padding_
    row = np.arange(num_steps + 1)[:, None]  # [T + 1, 1]
    end = padding_ + real  # [B]: the row after the last real step
    valid = (row >= padding_) & (row <= end)
    mask = ((row >= padding_) & (row < end))[:-1]
    continuation = np.ones((num_steps, size))
    for b in range(size):
        if terminated is not None and terminated[b]:
            continuation[end[b] - 1, b] = 0
    of_vectors = acts_by_vectors(config)

    def actions(num_rows: int) -> np.ndarray:
        if of_vectors:  # before they are squashed; most are beyond where tanh bends
            return rng.normal(size=(num_rows, size, *VECTORS.shape)) * 1.5
        return rng.integers(NUM_ACTIONS, size=(num_rows, size))

    action_type = tf.float32 if of_vectors else tf.int32
    previous_action = actions(num_steps + 1)
    reset = (row == padding_) & (padding_ > 0)
    previous_action[reset] = 0 if of_vectors else NO_ACTION

    def rows(x: np.ndarray, dtype: Any, real: np.ndarray) -> tf.Tensor:
        """Padded rows are zero."""
        shaped = real.reshape(real.shape + (1,) * (x.ndim - 2))
        return tf.constant(np.where(shaped, x, 0), dtype)

    per_item = {"task": 0, "actor": 1, "agent": 0, "learner_step": 0}
    return Batch(
        inputs=NetworkInput(
            rows(rng.normal(size=(num_steps + 1, size, OBSERVATION_SIZE)), tf.float32, valid),
            rows(previous_action, action_type, valid),
            rows(rng.normal(size=(num_steps + 1, size)), tf.float32, valid & ~reset),
        ),
        reset=tf.constant(reset),
        valid=tf.constant(valid),
        life_lost=tf.zeros([num_steps + 1, size], tf.bool),
        action=rows(actions(num_steps), action_type, mask),
        log_probability=rows(-2 * rng.random((num_steps, size)), tf.float32, mask),
        reward=rows(rng.normal(size=(num_steps, size)) * reward_scale, tf.float32, mask),
        continuation=rows(continuation, tf.float32, mask),
        mask=tf.constant(mask, tf.float32),
        core_state=core_state(config.lstm_size, size, rng, config.core),
        key=tf.constant(np.arange(size), tf.uint64),
        shard=tf.zeros([size], tf.int32),
        probability=tf.constant(rng.dirichlet(np.ones(size)), tf.float64),
        table_size=tf.fill([size], tf.constant(100, tf.int64)),
        **{name: tf.fill([size], tf.constant(value, tf.int64)) for name, value in per_item.items()},
    )


def random_inputs(seed: int, size: int, config: Any = None) -> NetworkInput:
    """A network's inputs for `size` environments in the midst of their episodes."""
    rng = np.random.default_rng(seed)
    observation = rng.normal(size=(size, OBSERVATION_SIZE)).astype(np.float32)
    if acts_by_vectors(config):
        action = rng.normal(size=(size, *VECTORS.shape)).astype(np.float32)
    else:
        action = rng.integers(NUM_ACTIONS, size=size).astype(np.int32)
    return NetworkInput(observation, action, rng.normal(size=size).astype(np.float32))


def inputs_after(action: int, reward: float) -> NetworkInput:
    """A network's inputs for two environments that were alike so far."""
    return NetworkInput(
        tf.ones([2, OBSERVATION_SIZE]), tf.fill([2], action), tf.fill([2], np.float32(reward))
    )


def bare(**fields: Any) -> Batch:
    """A batch that has these fields, and () for the others."""
    nothing = dict.fromkeys(Batch._fields, ()) | {"inputs": NetworkInput((), (), ())}
    return Batch(**nothing | fields)
