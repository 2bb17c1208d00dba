"""The plug: an agent is a record of functions, and the types those functions speak. No logic."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
import tensorflow as tf
from acme import specs

from replay.structures import Batch, Nest, NetworkInput, PriorityInput, TableSpec


class Network(Protocol):
    """A recurrent network with one method for acting and one for learning. Also a `snt.Module`."""

    trainable_variables: Sequence[tf.Variable]
    variables: Sequence[tf.Variable]

    @property
    def actions(self) -> specs.BoundedArray:
        """The spec of the environment's actions; previous ones have its shape and type."""

    def initial_state(self, batch_size: int) -> Nest:
        """The state at an episode's start: zeros `[batch_size, ...]`; () without a core."""

    def step(self, inputs: NetworkInput, core_state: Nest) -> tuple[Nest, Nest]:
        """One step: inputs and state `[B, ...]` -> outputs `[B, ...]` and the next state."""

    def unroll(
        self, inputs: NetworkInput, core_state: Nest, reset: tf.Tensor, valid: tf.Tensor
    ) -> tuple[Nest, Nest]:
        """T steps: inputs `[T, B, ...]` -> outputs `[T, B, ...]` and the state after the last row.

        Args:
          core_state: `[B, ...]`, the state before row 0.
          reset: `[T, B]` bool; the state becomes the initial one before such a row.
          valid: `[T, B]` bool; a row that is not leaves the state as it is.
        """


class PolicyOutput(NamedTuple):
    """A policy's answer to N observations; bounded actions have a density for a probability."""

    action: tf.Tensor  # [N] int32, or [N, D] int32 or float32, as replay holds it
    log_probability: tf.Tensor  # [N] float32: of that action, under the policy that chose it
    values: dict[str, tf.Tensor]  # [N, ...] float32, for `initial_priority` and `estimates`
    core_state: Nest  # [N, ...] after the step


Policy = Callable[[NetworkInput, Nest], PolicyOutput]


Following = Callable[[NetworkInput, Nest, tf.Tensor], PolicyOutput]
"""A policy that takes the actions which it is told, `[N]` or `[N, D]` as replay holds them."""

EnvironmentAction = Callable[[Any, specs.BoundedArray], Any]


class Update(Protocol):
    """One learner step. Also a `tf.Module`; its variables are all that a checkpoint must hold."""

    network: Network  # the parameters actors fetch
    variables: Sequence[tf.Variable]

    def __call__(self, batch: Batch) -> tuple[tf.Tensor | None, Mapping[str, tf.Tensor]]:
        """Changes the parameters; returns the items' new priorities `[B]` or None, and metrics.

        The batch has single frames: `agents.compilation.update_function` stacks them first.
        A metric is a scalar, or a vector with one number per task. `loss` and `gradient_norm`, of
        gradients before they are clipped, are always among them. Metrics with names that end so
        are scalars: the learner stops when one is not finite, before such parameters are saved. A
        `tf.function`: everything that changes is a `tf.Variable`.
        """


@dataclasses.dataclass(frozen=True)
class Agent:
    """An algorithm, as the rest of the system knows it.

    Attributes:
      name: as on the command line; also the name of its table and of its log.
      config: the frozen dataclass it was made from; recorded in the run folder.
      tables: the tables its learner reads; new priorities go to the first one.
      batch_sizes: items of one learner step from each of them.
      frame_stack: frames of one network input.
      resets_on_life_loss: whether a lost life resets the core state, for actors and learner alike.
      variable_update_period: vector steps between two fetches of parameters by an actor.
      make_network: a new network, its variables made; they follow from tf.random's global seed.
      make_policy: (network, indices `[n]` of actors in 0..N-1, N, seed) -> their policy.
      make_evaluation_policy: (network, seed) -> the policy of evaluation, in any number of
        environments.
      make_update: (environment_spec) -> the learner step, with its own new network.
      make_following: (network) -> a policy of this agent's values and states that takes the actions
        of demonstrations; None where it cannot learn from what others did. Its first table is
        prioritized, and its items do not cross episodes.
      initial_priority: first priorities `[M]` of M items; None where the table needs none.
      environment_action: (actions as replay holds them, `[N]` or `[N, D]`, the spec of the
        environment's) -> the environment's actions, within the spec's bounds; None passes them on.
        Agents that learn from one stream have to agree on it. An actor has numpy's arrays; for
        `launch.export` it has to take tensors too.
      estimates: (update, values of its evaluation policy, index of the task) -> the agent's
        estimates of the return, `[N]` by name: Q of the actions taken or V, in the units of the
        rewards that it learns from.
      can_be_several: whether its update reduces over `agents.several_learners`, so that several
        learners can each have a part of a batch.
      has_action_values: whether its network's outputs are action values `[..., A]`.
      is_recurrent: whether its network carries a state from step to step.
      masks_actions: whether it takes legal actions alone where an observation has the part
        `environments.copies.vector.ACTION_MASK`; else it plays no such environment.
    """

    name: str
    config: Any
    tables: tuple[TableSpec, ...]
    batch_sizes: tuple[int, ...]
    variable_update_period: int
    make_network: Callable[[specs.EnvironmentSpec], Network]
    make_policy: Callable[[Network, np.ndarray, int, int], Policy]
    make_evaluation_policy: Callable[[Network, int], Policy]
    make_update: Callable[[specs.EnvironmentSpec], Update]
    estimates: Callable[[Any, Mapping[str, tf.Tensor], int], Mapping[str, tf.Tensor]]
    make_following: Callable[[Any], Following] | None = None
    initial_priority: Callable[[PriorityInput], np.ndarray] | None = None
    environment_action: EnvironmentAction | None = None
    frame_stack: int = 1
    resets_on_life_loss: bool = False
    can_be_several: bool = False
    has_action_values: bool = False
    is_recurrent: bool = True
    masks_actions: bool = False

    @property
    def batch_size(self) -> int:
        """Items of one learner step."""
        return sum(self.batch_sizes)
