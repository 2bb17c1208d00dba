"""The one recurrent actor: N environments in lockstep, one batched forward pass per step.

    observation, step_type, lives [N]  --act-->         action [N] or [N, D]
    action                             --environment--> reward, continuation [N]
    reward, continuation [N]           --observe-->     one row for the writer

`RecurrentActor` knows nothing of where the observations come from: `agents.environment_loop` feeds
it from a gymnasium `VectorEnv`, `agents.single_process` from `acme.EnvironmentLoop` (N = 1).
"""

import dataclasses
import sys
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
import tensorflow as tf
import tree
from acme import core, specs
from acme.tf import variable_utils

from agents.compilation import policy_function
from agents.contract import Agent, EnvironmentAction, Network, Policy
from agents.networks.network import is_discrete
from agents.networks.parts import masks
from environments.copies.vector import has_mask
from replay.frames import FrameStack, is_image
from replay.structures import FIRST, LAST, NO_ACTION, Nest, NetworkInput, Step
from tensor_ops.elementwise import where_rows
from tensor_ops.loops import without_loops

AnyNetwork = TypeVar("AnyNetwork", bound=Network)
_DISCRETE = specs.DiscreteArray(1)
_FEW_ENVIRONMENTS = 8  # below, TensorFlow's operations are as quick as loops of this project's own


class Writer(Protocol):
    """The part of `replay.writer.SequenceWriter` that an actor needs."""

    def append(
        self, step: Step, *, core_state: Nest, values: dict[str, np.ndarray], learner_step: int
    ) -> None: ...


class Variables(NamedTuple):
    """An actor's copy of the parameters, and how it is refreshed."""

    client: variable_utils.VariableClient
    learner_step: tf.Variable  # int64: the learner step the copy is from

    @classmethod
    def of(cls, source: core.VariableSource, network: Network, period: int) -> "Variables":
        """A copy that follows `source`, a learner, every `period` calls of `client.update`."""
        learner_step = tf.Variable(0, dtype=tf.int64, trainable=False)
        fetched = {"policy": [*network.variables, learner_step]}
        return cls(variable_utils.VariableClient(source, fetched, period), learner_step)


class RecurrentActor:
    """Acts in N environments and writes every row of their streams.

    Args:
      policy: how the N actors behave.
      initial_state: `[N, ...]`, the core state at an episode's start.
      frame_stack: frames of one network input.
      actions: the spec of one environment's; the number of discrete ones does not matter.
      environment_action: as `Agent.environment_action`; None passes the policy's actions on.
      resets_on_life_loss: whether a lost life resets the core state as an episode's end does.
      writer: takes the rows; None only acts (evaluation).
      variables: refreshed once a step at most; None keeps the parameters as they are.
    """

    def __init__(
        self,
        policy: Policy,
        initial_state: Nest,
        *,
        num_environments: int,
        frame_stack: int,
        actions: specs.BoundedArray = _DISCRETE,
        environment_action: EnvironmentAction | None = None,
        resets_on_life_loss: bool = False,
        writer: Writer | None = None,
        variables: Variables | None = None,
    ) -> None:
        # Each process compiles and keeps its own loops: some 30 MB and seconds.
        is_small = num_environments < _FEW_ENVIRONMENTS
        self._policy = policy_function(without_loops()(policy) if is_small else policy)
        self._initial_state = tree.map_structure(np.asarray, initial_state)
        self._core_state = self._initial_state
        self._frames = FrameStack(frame_stack)
        self._resets_on_life_loss = resets_on_life_loss
        self._writer = writer
        self._variables = variables
        self._actions = actions
        self._environment_action = environment_action
        self._no_action = _no_action(actions, num_environments)
        self._previous_action = self._no_action
        self._previous_reward = np.zeros(num_environments, np.float32)
        self._lives = np.zeros(num_environments, np.uint8)
        self._pending: tuple[Step, Nest, dict[str, np.ndarray]] | None = None

    def act(self, observation: Nest, step_type: np.ndarray, lives: np.ndarray) -> np.ndarray:
        """Chooses the actions of one row; on `LAST` rows they mean nothing.

        Args:
          observation: `[N, ...]` unstacked, as the environments gave it.
          step_type: `[N]` FIRST, MID or LAST.
          lives: `[N]` lives left; zeros where the environment has none.

        Returns:
          `[N]` or `[N, D]` int32, or `[N, D]` float32, for the environments.

        Raises:
          RuntimeError: when the row before was not observed.
          ValueError: when no action is legal.
        """
        if has_mask(observation):
            masks().check_any(observation, step_type != LAST)
        if self._pending is not None:
            raise RuntimeError("Cannot act: the outcome of the previous action was never observed.")
        first = step_type == FIRST
        reset = first | (lives < self._lives) if self._resets_on_life_loss else first
        core_state = self._reset(reset)
        inputs = NetworkInput(
            observation=self._frames.push(observation, first),
            previous_action=where_rows(first, self._no_action, self._previous_action),
            previous_reward=np.where(first, np.float32(0), self._previous_reward),
        )
        output = self._policy(inputs, core_state)
        action = output.action.numpy()
        self._core_state = tree.map_structure(lambda x: x.numpy(), output.core_state)
        zeros = np.zeros(len(action), np.float32)
        row = Step(
            observation=observation,
            step_type=step_type.astype(np.uint8),
            lives=lives.astype(np.uint8),
            action=action,
            log_probability=output.log_probability.numpy(),
            reward=zeros,
            continuation=zeros,
        )
        self._pending = (row, core_state, {k: v.numpy() for k, v in output.values.items()})
        self._lives = row.lives
        if self._environment_action is None:
            return action
        return self._environment_action(action, self._actions)

    def observe(self, reward: np.ndarray, continuation: np.ndarray) -> None:
        """Completes the row that `act` began with the outcome of its actions, `[N]` each."""
        if self._pending is None:
            raise RuntimeError("Cannot observe: no action was chosen since the last observation.")
        row, core_state, values = self._pending
        self._pending = None
        self._previous_action = row.action
        self._previous_reward = reward.astype(np.float32)
        row = row._replace(
            reward=self._previous_reward, continuation=continuation.astype(np.float32)
        )
        if self._writer is not None:
            self._writer.append(
                row, core_state=core_state, values=values, learner_step=self.learner_step
            )

    def break_off(self) -> None:
        """Forgets the row that `act` began: nobody will observe its outcome."""
        self._pending = None

    def update(self, wait: bool = False) -> None:
        """Fetches parameters every so many calls: in the background, or at once with `wait`."""
        if self._variables is not None:
            if wait:
                self._variables.client.update_and_wait()
            else:
                self._variables.client.update()

    @property
    def learner_step(self) -> int:
        """The learner step that the parameters in use are from."""
        return int(self._variables.learner_step) if self._variables is not None else 0

    def _reset(self, reset: np.ndarray) -> Nest:
        if not reset.any():
            return self._core_state
        return where_rows(reset, self._initial_state, self._core_state)


def make_actor(
    agent: Agent,
    network: Network,
    policy: Policy,
    *,
    num_environments: int,
    source: core.VariableSource | None = None,
    writer: Writer | None = None,
    initial_state: Nest = None,
) -> RecurrentActor:
    """An actor that acts for `agent` by a policy.

    Args:
      network: the agent's, its variables made; the policy asks it.
      policy: of N actors.
      num_environments: N.
      source: the learner whose parameters it follows; None keeps those of the network.
      writer: takes its rows; None where nobody does.
      initial_state: the policy's core state at an episode's start; None is the network's.
    """
    period = agent.variable_update_period
    if initial_state is None:
        initial_state = network.initial_state(num_environments)
    return RecurrentActor(
        policy,
        initial_state,
        num_environments=num_environments,
        frame_stack=agent.frame_stack,
        actions=network.actions,
        environment_action=agent.environment_action,
        resets_on_life_loss=agent.resets_on_life_loss,
        writer=writer,
        variables=Variables.of(source, network, period) if source is not None else None,
    )


def make_evaluator(agent: Agent, network: Network, *, seed: int, **how: Any) -> RecurrentActor:
    """An actor that behaves as `agent` is evaluated; the rest is as for `make_actor`.

    It fetches parameters by `update(wait=True)` alone, so that all steps in between are of one
    learner step.
    """
    frozen = dataclasses.replace(agent, variable_update_period=sys.maxsize)
    return make_actor(frozen, network, agent.make_evaluation_policy(network, seed), **how)


def with_variables(
    network: AnyNetwork, environment_spec: specs.EnvironmentSpec, frame_stack: int
) -> AnyNetwork:
    """The same network, its variables made by a first call: Sonnet makes them no sooner."""
    network.step(network_input(environment_spec, frame_stack), network.initial_state(1))
    return network


def network_input(environment_spec: specs.EnvironmentSpec, frame_stack: int) -> NetworkInput:
    """The network's inputs at the first step of one environment, `[1, ...]`, all zero.

    Raises:
      ValueError: frames are to be stacked and no part is an image.
    """
    shapes = [spec.shape for spec in tree.flatten(environment_spec.observations)]
    if frame_stack > 1 and not any(is_image(len(shape)) for shape in shapes):
        raise ValueError(
            f"frame_stack must be 1 where nothing that is seen is an image, got {frame_stack}; "
            f"the observations' shapes are {', '.join(map(str, shapes))}."
        )
    observation = tree.map_structure(
        lambda spec: np.zeros((1, *spec.shape), spec.dtype), environment_spec.observations
    )
    return NetworkInput(
        observation=FrameStack(frame_stack).push(observation, np.ones(1, bool)),
        previous_action=_no_action(environment_spec.actions, 1),
        previous_reward=np.zeros(1, np.float32),
    )


def _no_action(actions: specs.BoundedArray, num_environments: int) -> np.ndarray:
    """The previous actions of N episodes' first steps: `NO_ACTION`, or zeros for bounded ones."""
    none = NO_ACTION if is_discrete(actions) else 0
    return np.full((num_environments, *actions.shape), none, actions.dtype)
