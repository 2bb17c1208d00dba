"""A policy as TensorFlow's SavedModel, which plays where nothing of this project is installed.

What the model does in a step is what `agents.actor.RecurrentActor` does for an evaluation, the
stacking of frames and the squashing of bounded actions among it. All that lasts from step to step
is in the state that it takes and gives:

    state = policy.initial_state(N)
    action, state = policy.step(observation, reward, first, state)

`first` `[N]` says where an episode begins: there the state begins anew, and the reward before it is
ignored. Where lives are lost, an agent whose memory that clears (`Agent.resets_on_life_loss`) has
`step_with_lives` too, which takes those that are left, `[N]`, after `first`.
"""

import pathlib
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf
import tree
from acme import specs

from agents.actor import network_input
from agents.contract import Agent, Network, Policy, PolicyOutput
from analysis.playing.evaluation import Player
from replay.frames import is_image
from replay.structures import Nest, NetworkInput
from run_folder import building
from run_folder.settings import SettingsError
from tensor_ops.loops import without_loops

State = dict[str, Any]
"""`core`: leaves of the core state; `frames`: of each leaf of an observation that is stacked, the
last k - 1, `[N, k - 1, ...]`; `previous_action`; with them `lives`."""


class _Steps:
    """How an agent is evaluated, in any number of environments at once.

    No tf.Module: that would wrap each dictionary that hangs on it, for the sake of variables in it.

    Args:
      agent: whose policy it is.
      network: the agent's; its variables are saved with the model.
      spec: of the environment.
      seed: of what is drawn, such as actions from a policy.
    """

    def __init__(
        self, agent: Agent, network: Network, spec: specs.EnvironmentSpec, seed: int
    ) -> None:
        self._agent = agent
        self._actions = network.actions
        self._make_core = network.initial_state
        self._core = network.initial_state(1)
        self._no_action = network_input(spec, 1).previous_action
        self._observation = spec.observations
        self._policy, drawn = _with_its_variables(agent, network, seed)
        self._variables = [*network.variables, *drawn]

    def module(self) -> tf.Module:
        """What is saved: the functions, and the variables that they read."""
        module = tf.Module()
        module.saved = self._variables
        module.initial_state = tf.function(
            self._initial_state, input_signature=[tf.TensorSpec([], tf.int32, "num_environments")]
        )
        observation, reward, first, state = self._signature()
        signature = [observation, reward, first, state]
        module.step = tf.function(self._step, input_signature=signature)
        if self._agent.resets_on_life_loss:
            lives = tf.TensorSpec([None], tf.uint8, "lives")
            signature = [observation, reward, first, lives, state]
            module.step_with_lives = tf.function(self._step_with_lives, input_signature=signature)
        return module

    def _signature(self) -> tuple[Nest, tf.TensorSpec, tf.TensorSpec, State]:
        """Of observation, reward, first and state."""

        def rows(spec: Any, name: str) -> tf.TensorSpec:
            return tf.TensorSpec([None, *spec.shape], spec.dtype, name)

        state = self._initial_state(tf.constant(1))
        observation = tree.map_structure_with_path(
            lambda path, spec: rows(spec, "_".join(map(str, ("observation", *path)))),
            self._observation,
        )
        of_state = tree.map_structure_with_path(
            lambda path, x: tf.TensorSpec([None, *x.shape[1:]], x.dtype, "_".join(map(str, path))),
            state,
        )
        reward = tf.TensorSpec([None], tf.float32, "reward")
        return observation, reward, tf.TensorSpec([None], tf.bool, "first"), of_state

    def _initial_state(self, num_environments: tf.Tensor) -> State:
        n, stack = num_environments, self._agent.frame_stack
        state: State = dict(
            core=tuple(tree.flatten(self._make_core(n))),
            frames=tuple(
                tf.zeros([n, stack - 1, *leaf.shape], leaf.dtype)
                for leaf in tree.flatten(self._observation)
                if is_image(len(leaf.shape))
            ),
            previous_action=tf.repeat(tf.constant(self._no_action), n, axis=0),
        )
        if self._agent.resets_on_life_loss:
            state["lives"] = tf.zeros([n], tf.uint8)
        return state

    def _step(
        self, observation: Nest, reward: tf.Tensor, first: tf.Tensor, state: State
    ) -> tuple[tf.Tensor, State]:
        action, after = self._advance(observation, reward, first, first, state)
        return action, {**state, **after}

    def _step_with_lives(
        self, observation: Nest, reward: tf.Tensor, first: tf.Tensor, lives: tf.Tensor, state: State
    ) -> tuple[tf.Tensor, State]:
        forgets = first | (lives < state["lives"])
        action, after = self._advance(observation, reward, first, forgets, state)
        return action, {**after, "lives": lives}

    def _advance(
        self,
        observation: Nest,
        reward: tf.Tensor,
        first: tf.Tensor,
        forgets: tf.Tensor,
        state: State,
    ) -> tuple[tf.Tensor, State]:
        begun = self._initial_state(tf.shape(reward)[0])
        core = _where(forgets, begun["core"], state["core"])
        frames = _where(first, begun["frames"], state["frames"])
        stacked, frames = _push(observation, frames)
        inputs = NetworkInput(
            observation=stacked,
            previous_action=_where(first, begun["previous_action"], state["previous_action"]),
            previous_reward=tf.where(first, 0.0, reward),
        )
        output: PolicyOutput = self._policy(inputs, tree.unflatten_as(self._core, core))
        given = self._agent.environment_action
        action = given(output.action, self._actions) if given else output.action
        after = dict(
            core=tuple(tree.flatten(output.core_state)),
            frames=frames,
            previous_action=output.action,
        )
        return action, after


@without_loops()
def write(player: Player, folder: pathlib.Path) -> None:
    """Writes a player's policy as a SavedModel into a folder.

    Raises:
      SettingsError: its agent does something that a graph cannot hold.
      OSError: the folder cannot be written.
    """
    spec = building.environment_spec(player.run)
    try:
        made = _Steps(player.agent, player.network, spec, player.played.seed).module()
        made.step.get_concrete_function()
    except (NotImplementedError, TypeError) as error:  # numpy, of somebody's own agent
        raise SettingsError(
            f"{player.agent.name} cannot be exported: its policy and its environment_action must "
            f"compute with TensorFlow alone, and {str(error).splitlines()[0]}"
        ) from None
    folder.parent.mkdir(parents=True, exist_ok=True)
    tf.saved_model.save(made, str(folder))


def _with_its_variables(
    agent: Agent, network: Network, seed: int
) -> tuple[Policy, list[tf.Variable]]:
    """The policy by which an agent is evaluated, and what it draws random numbers with."""
    drawn: list[tf.Variable] = []

    def note(make: Callable[..., tf.Variable], **arguments: Any) -> tf.Variable:
        drawn.append(make(**arguments))
        return drawn[-1]

    with tf.variable_creator_scope(note):
        policy = agent.make_evaluation_policy(network, seed)
    return policy, drawn


def _where(condition: tf.Tensor, x: Nest, y: Nest) -> Nest:
    """`[N]` bool and two structures of `[N, ...]`: the first where the condition holds."""

    def choose(a: tf.Tensor, b: tf.Tensor) -> tf.Tensor:
        return tf.where(tf.reshape(condition, [-1, *[1] * (len(a.shape) - 1)]), a, b)

    return tree.map_structure(choose, x, y)


def _push(observation: Nest, frames: tuple[tf.Tensor, ...]) -> tuple[Nest, tuple[tf.Tensor, ...]]:
    """What `replay.frames.FrameStack` makes of the newest observation, and the frames to keep.

    Args:
      observation: `[N, ...]` single frames.
      frames: of each image's, in order, the k - 1 before: `[N, k - 1, ...]`.
    """
    older, stacked, kept = iter(frames), [], []
    for leaf in tree.flatten(observation):
        if not is_image(len(leaf.shape) - 1):
            stacked.append(leaf)
            continue
        all_ = tf.concat([next(older), leaf[:, None]], axis=1)  # [N, k, H, W(, C)]
        kept.append(all_[:, 1:])
        k, _, width, *channels = all_.shape[1:]
        last = tf.transpose(all_, [0, 2, 3, 1, *range(4, len(all_.shape))])
        shape = [-1, leaf.shape[1], width, k * int(np.prod(channels, dtype=int))]
        stacked.append(tf.reshape(last, shape))
    return tree.unflatten_as(observation, stacked), tuple(kept)
