"""The recurrent network that every agent uses: torso, core, head.

    observation --torso--> x --+--> core --> head --> outputs
    previous action, reward ---+     ↺ state

Everything but the core is blind to time, so an unroll folds time into the batch for the torso and
the head, and only the core's own recurrence runs step by step.
"""

import math
from collections.abc import Callable
from typing import Protocol

import numpy as np
import sonnet as snt
import tensorflow as tf
import tree
from acme import specs

from agents.networks.core import Core
from replay.structures import Batch, Nest, NetworkInput

PREVIOUS_REWARD_LIMIT = 1.0


class Torso(Protocol):
    """From one observation to one vector."""

    def prepare(self, observation: Nest) -> Nest:
        """What `__call__` does before there are parameters: several networks can share it."""

    def __call__(self, observation: Nest) -> tf.Tensor:
        """`[B, ...]`, prepared or not -> `[B, D]`, of any floating type."""


class RecurrentNetwork(snt.Module):
    """Implements `agents.contract.Network`.

    Args:
      torso: observation `[B, ...]` -> `[B, D]`, of any floating type.
      core: `agents.networks.core.LSTM` or `NoMemory`.
      head: `[B, H]` -> a structure of `[B, ...]`.
      actions: the spec of the environment's. The previous one enters the core as a one-hot code of
        width A where they are discrete, as it is where they are vectors of A; none as zeros.
      sees_previous_step: whether previous action and reward enter the core.
    """

    def __init__(
        self,
        torso: Torso,
        core: Core,
        head: Callable[[tf.Tensor], Nest],
        actions: specs.BoundedArray,
        *,
        sees_previous_step: bool = True,
    ) -> None:
        super().__init__()
        self._torso = torso
        self._core = core
        self._head = head
        self._actions = actions
        self._sees_previous_step = sees_previous_step

    @property
    def actions(self) -> specs.BoundedArray:
        """The spec of the environment's actions."""
        return self._actions

    @property
    def head(self) -> Callable[[tf.Tensor], Nest]:
        """What turns the core's outputs into the network's."""
        return self._head

    @property
    def core(self) -> Core:
        """What carries a state from one step to the next."""
        return self._core

    def with_core(self, core: Core) -> "RecurrentNetwork":
        """A network around another core, with this one's torso and head and their variables."""
        return RecurrentNetwork(
            self._torso,
            core,
            self._head,
            self._actions,
            sees_previous_step=self._sees_previous_step,
        )

    def initial_state(self, batch_size: int) -> Nest:
        """The core state before an episode's first step."""
        return self._core.initial_state(batch_size)

    def prepare(self, inputs: NetworkInput) -> NetworkInput:
        """Inputs `[T, B, ...]` with what torsos do to images before there are parameters done.

        This network reads them as it reads others, and so does any of the same make.
        """
        return inputs._replace(observation=apply_to_rows(self._torso.prepare, inputs.observation))

    def step(self, inputs: NetworkInput, core_state: Nest) -> tuple[Nest, Nest]:
        """One step: inputs and state `[B, ...]` -> outputs `[B, ...]` and the next state."""
        x, core_state = self._core.step(self._embed(inputs), core_state)
        return self._head(x), core_state

    def unroll(
        self, inputs: NetworkInput, core_state: Nest, reset: tf.Tensor, valid: tf.Tensor
    ) -> tuple[Nest, Nest]:
        """T steps: inputs `[T, B, ...]` -> outputs `[T, B, ...]` and the state after row T - 1."""
        x, core_state = self.unroll_core(inputs, core_state, reset, valid)
        return apply_to_rows(self._head, x), core_state

    def warm_up(
        self, inputs: NetworkInput, core_state: Nest, reset: tf.Tensor, valid: tf.Tensor
    ) -> Nest:
        """The state after T steps whose outputs nobody wants; arguments as for `unroll`."""
        return self.unroll_core(inputs, core_state, reset, valid)[1]

    def unroll_core(
        self, inputs: NetworkInput, core_state: Nest, reset: tf.Tensor, valid: tf.Tensor
    ) -> tuple[tf.Tensor, Nest]:
        """As `unroll`, without the head: the core's outputs `[T, B, H]`."""
        x = apply_to_rows(self._embed, inputs)  # [T, B, D]
        return self._core.unroll(x, core_state, reset, valid)

    def _embed(self, inputs: NetworkInput) -> tf.Tensor:
        x = self._torso(inputs.observation)
        if not self._sees_previous_step:
            return x
        action = self._code(inputs.previous_action, x.dtype)
        reward = tf.clip_by_value(
            inputs.previous_reward, -PREVIOUS_REWARD_LIMIT, PREVIOUS_REWARD_LIMIT
        )
        reward = tf.cast(reward, x.dtype)[:, tf.newaxis]
        return tf.concat([x, action, reward], axis=-1)  # [B, D + A + 1]

    def _code(self, action: tf.Tensor, dtype: tf.DType) -> tf.Tensor:
        """Actions `[B]`, or vectors `[B, A]` -> `[B, A]`."""
        if isinstance(self._actions, specs.DiscreteArray):
            # NO_ACTION is outside 0..A-1, so its code is all zero.
            return tf.one_hot(action, self._actions.num_values, dtype=dtype)
        return tf.cast(action, dtype)


def num_discrete(actions: specs.BoundedArray) -> int:
    """How many actions there are to choose from.

    Raises:
      ValueError: if they are not discrete.
    """
    if isinstance(actions, specs.DiscreteArray):
        return int(actions.num_values)
    size = math.prod(actions.shape)
    raise ValueError(
        f"The agent needs discrete actions, but this environment's are {size} "
        f"number{'s' * (size > 1)} from {np.min(actions.minimum):g} to {np.max(actions.maximum):g}."
    )


def unroll_trained(
    network: RecurrentNetwork, batch: Batch, core_state: Nest, reset: tf.Tensor, burn_in: int
) -> Nest:
    """A network's outputs on a batch's trained rows and the last, `[L + 1, B, ...]`.

    The arguments are those of `unroll_trained_core`.
    """
    x = unroll_trained_core(network, batch, core_state, reset, burn_in)
    return apply_to_rows(network.head, x)


def unroll_trained_core(
    network: RecurrentNetwork, batch: Batch, core_state: Nest, reset: tf.Tensor, burn_in: int
) -> tf.Tensor:
    """The outputs of a network's core on a batch's trained rows and the last, `[L + 1, B, H]`.

    Args:
      network: also warms up its own state on the burn-in, through which no gradient flows.
      batch: T = `burn_in` + L.
      core_state: `[B, ...]`, before row 0.
      reset: `[T + 1, B]` bool; the core state becomes the initial one before such a row.
      burn_in: rows that only warm up.
    """
    rows = (batch.inputs, reset, batch.valid)
    if burn_in:
        inputs, resets, valid = tree.map_structure(lambda x: x[:burn_in], rows)
        core_state = network.warm_up(inputs, core_state, resets, valid)
        core_state = tree.map_structure(tf.stop_gradient, core_state)
    inputs, resets, valid = tree.map_structure(lambda x: x[burn_in:], rows)
    return network.unroll_core(inputs, core_state, resets, valid)[0]


def apply_to_rows(function: Callable[[Nest], Nest], inputs: Nest) -> Nest:
    """Applies a function of `[N, ...]` to `[T, B, ...]`, with N = T x B."""
    rows = tf.shape(tree.flatten(inputs)[0])[:2]
    num_rows = tree.flatten(inputs)[0].shape[0]
    folded = tree.map_structure(lambda x: tf.reshape(x, [-1, *x.shape[2:]]), inputs)

    def unfold(x: tf.Tensor) -> tf.Tensor:
        shape = tf.concat([rows, tf.shape(x)[1:]], axis=0)
        return tf.ensure_shape(tf.reshape(x, shape), [num_rows, None, *x.shape[1:]])

    return tree.map_structure(unfold, function(folded))
