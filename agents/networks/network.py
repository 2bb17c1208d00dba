"""The recurrent network that every agent uses: torso, core, head.

    observation --torso--> x --+--> core --> head --> outputs
    previous action, reward ---+     ↺ state

Everything but the core is blind to time, so an unroll folds time into the batch for the torso and
the head, and only the core's own recurrence runs step by step.
"""

import math
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import sonnet as snt
import tensorflow as tf
import tree
from acme import specs

from agents.networks.core import Core, make_core
from agents.networks.named import FORGET_BIAS
from agents.networks.parts import masks, torso_of
from environments.copies.vector import has_mask
from replay.structures import Batch, Nest, NetworkInput

PREVIOUS_REWARD_LIMIT = 1.0

Rows: TypeAlias = tuple[NetworkInput, tf.Tensor, tf.Tensor]  # inputs, reset, valid: [T, B, ...]


class RecurrentNetwork(snt.Module):
    """Implements `agents.contract.Network`.

    Args:
      torso: observation `[B, ...]` -> `[B, D]`, of any floating type.
      core: as `agents.networks.core.make_core` makes it.
      head: `[B, H]` -> a structure of `[B, ...]`.
      actions: the spec of the environment's. The previous one enters the core as a one-hot code of
        width A where they are discrete, one for each number of several, and as it is where they are
        vectors of A; none as zeros.
      sees_previous_step: whether previous action and reward enter the core.
    """

    def __init__(
        self,
        torso: Callable[[Nest], tf.Tensor],
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
        self.actions = actions
        self._sees_previous_step = sees_previous_step

    @property
    def head(self) -> Callable[[tf.Tensor], Nest]:
        """The module that turns the core's outputs into the network's."""
        return self._head

    @property
    def core(self) -> Core:
        """The module that carries a state from one step to the next."""
        return self._core

    def with_core(self, core: Core) -> "RecurrentNetwork":
        """A network around another core, with this one's torso and head and their variables."""
        return type(self)(
            self._torso,
            core,
            self._head,
            self.actions,
            sees_previous_step=self._sees_previous_step,
        )

    def initial_state(self, batch_size: int) -> Nest:
        """The core state before an episode's first step."""
        return self._core.initial_state(batch_size)

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

    def unroll_core(
        self, inputs: NetworkInput, core_state: Nest, reset: tf.Tensor, valid: tf.Tensor
    ) -> tuple[Nest, Nest]:
        """As `unroll`, without the head: its inputs, the core's outputs `[T, B, H]`."""
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
        """Actions `[B]`, `[B, D]`, or vectors `[B, A]` -> `[B, A]`."""
        if not is_discrete(self.actions):
            return tf.cast(action, dtype)
        # NO_ACTION is outside 0..A-1, so its code is all zero.
        counts = choices_of(self.actions)
        if not self.actions.shape:
            return tf.one_hot(action, counts[0], dtype=dtype)
        codes = [tf.one_hot(action[:, d], n, dtype=dtype) for d, n in enumerate(counts)]
        return tf.concat(codes, axis=-1)


def network_under(
    head: snt.Module,
    config: Any,
    environment_spec: specs.EnvironmentSpec,
    w_init: snt.initializers.Initializer | None = None,
) -> RecurrentNetwork:
    """The torso and the core of an agent's config, under a head.

    Without a core the network does not see the previous step either: that is memory of a kind.

    Args:
      head: core output `[B, H]` -> a structure of `[B, ...]`.
      config: with fields `torso`, `hidden_sizes`, `core`, `lstm_size` and `precision`; without a
        field `forget_bias` it is 1.
      w_init: as `make_torso` takes it.
    """
    dtype = tf.as_dtype(config.precision)
    forget_bias = getattr(config, "forget_bias", FORGET_BIAS)
    seen, kind = environment_spec.observations, RecurrentNetwork
    if has_mask(seen):
        seen, kind = masks().shown(seen), masks().MaskedNetwork
    return kind(
        torso=torso_of(seen, config.torso, config.hidden_sizes, w_init, dtype),
        core=make_core(config.lstm_size, dtype, config.core, forget_bias),
        head=head,
        actions=environment_spec.actions,
        sees_previous_step=config.lstm_size > 0,
    )


def is_discrete(actions: specs.Array) -> bool:
    """Returns whether an action is a whole number, or several of them `[D]`."""
    return actions.dtype.kind in "iu"


def choices_of(actions: specs.BoundedArray, who: str = "The agent") -> tuple[int, ...]:
    """The number of values of each number of a discrete action; they begin at 0.

    Args:
      actions: the spec of the environment's, as `environments.copies.spec.spec_of` makes it.
      who: needs them discrete, as a sentence begins.

    Raises:
      ValueError: they are vectors.
    """
    if not is_discrete(actions):
        raise ValueError(
            f"{who} needs discrete actions, but this environment's are {_told(actions)}."
        )
    return tuple(int(last) + 1 for last in np.broadcast_to(actions.maximum, actions.shape).flat)


def num_discrete(actions: specs.BoundedArray, who: str) -> int:
    """The number of actions to choose from; arguments as for `choices_of`.

    Raises:
      ValueError: they are vectors, or several numbers each.
    """
    counts = choices_of(actions, who)
    if actions.shape:
        raise ValueError(
            f"{who} needs one discrete action, but this environment's are {_told(actions)}."
        )
    return counts[0]


def _told(actions: specs.BoundedArray) -> str:
    size = math.prod(actions.shape)
    least, greatest = np.min(actions.minimum), np.max(actions.maximum)
    return f"{size} number{'s' * (size != 1)} from {least:g} to {greatest:g}"


def unroll_trained(
    network: RecurrentNetwork,
    batch: Batch,
    core_state: Nest,
    reset: tf.Tensor,
    burn_in: int,
    *,
    learns: bool,
) -> Nest:
    """A network's outputs on a batch's trained rows and the last, `[L + 1, B, ...]`.

    Args:
      network: warms up its own state on the burn-in, through which no gradient flows.
      batch: T = `burn_in` + L.
      core_state: `[B, ...]`, before row 0.
      reset: `[T + 1, B]` bool; the core state becomes the initial one before such a row.
      burn_in: rows that only warm up.
      learns: whether there will be a gradient; without one all rows are one unroll.
    """
    rows = (batch.inputs, reset, batch.valid)
    if learns:
        rows, core_state = _warmed_up(network, rows, core_state, burn_in)
    x, _ = network.unroll_core(rows[0], core_state, *rows[1:])
    trained = tree.map_structure(lambda y: y if learns else y[burn_in:], x)
    return apply_to_rows(network.head, trained)


def unroll_trained_core(
    network: RecurrentNetwork, batch: Batch, core_state: Nest, reset: tf.Tensor, burn_in: int
) -> Nest:
    """The outputs of a network's core on a batch's trained rows and the last, `[L + 1, B, H]`.

    No loss learns from the last row, which is only bootstrapped from. It is unrolled apart and has
    no gradient here: so the torso is not differentiated on it for nothing, which for items of 20
    rows costs more than a short unroll of its own.

    Arguments as for `unroll_trained`.
    """
    rows = (batch.inputs, reset, batch.valid)
    rows, core_state = _warmed_up(network, rows, core_state, burn_in)
    inputs, resets, valid = tree.map_structure(lambda x: x[:-1], rows)
    trained, core_state = network.unroll_core(inputs, core_state, resets, valid)
    inputs, resets, valid = tree.map_structure(lambda x: x[-1:], rows)
    last, _ = network.unroll_core(inputs, core_state, resets, valid)
    last = tree.map_structure(tf.stop_gradient, last)
    return tree.map_structure(lambda *x: tf.concat(x, axis=0), trained, last)


def _warmed_up(
    network: RecurrentNetwork, rows: Rows, core_state: Nest, burn_in: int
) -> tuple[Rows, Nest]:
    """The rows that follow the burn-in, and the state before them, which has no gradient."""
    if not burn_in:
        return rows, core_state
    inputs, resets, valid = tree.map_structure(lambda x: x[:burn_in], rows)
    _, core_state = network.unroll_core(inputs, core_state, resets, valid)
    following: Rows = tree.map_structure(lambda x: x[burn_in:], rows)
    return following, tree.map_structure(tf.stop_gradient, core_state)


def apply_to_rows(function: Callable[[Nest], Nest], inputs: Nest) -> Nest:
    """Applies a function of `[N, ...]` to `[T, B, ...]`, with N = T x B."""
    rows = tf.shape(tree.flatten(inputs)[0])[:2]
    num_rows = tree.flatten(inputs)[0].shape[0]
    folded = tree.map_structure(lambda x: tf.reshape(x, [-1, *x.shape[2:]]), inputs)

    def unfold(x: tf.Tensor) -> tf.Tensor:
        shape = tf.concat([rows, tf.shape(x)[1:]], axis=0)
        return tf.ensure_shape(tf.reshape(x, shape), [num_rows, None, *x.shape[1:]])

    return tree.map_structure(unfold, function(folded))
