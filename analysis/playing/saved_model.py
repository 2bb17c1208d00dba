"""A policy as TensorFlow's SavedModel, which plays where nothing of this project is installed.

A step of the model does all that `agents.actor.RecurrentActor` does for an evaluation, including
the stacking of frames and the squashing of bounded actions. Everything that lasts from step to step
is in the state that it takes and returns:

    state = policy.initial_state(N)
    action, state = policy.step(observation, reward, first, state)

`first` `[N]` says where an episode begins: there the state begins anew, and the reward before it is
ignored. An agent whose memory is cleared when a life is lost (`Agent.resets_on_life_loss`) also has
`step_with_lives`, which takes the lives that are left, `[N]`, after `first`.
"""

import os
import pathlib
import tempfile
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
import tree
from acme import specs

from agents.actor import network_input
from agents.contract import Agent, Network, Policy, PolicyOutput
from analysis.playing import files
from analysis.playing.evaluation import Player
from environments.copies.dead_simulators import first_line
from replay.frames import is_image
from replay.structures import Nest, NetworkInput
from run_folder import building, disk
from run_folder.settings import SettingsError
from tensor_ops.elementwise import where_rows
from tensor_ops.loops import without_loops

State = dict[str, Any]
"""`core`: leaves of the core state; `frames`: of each leaf of an observation that is stacked, the
last k - 1, `[N, k - 1, ...]`; `previous_action`; with them `lives`."""


def _module(agent: Agent, network: Network, spec: specs.EnvironmentSpec, seed: int) -> tf.Module:
    """An agent's evaluation policy for any number of environments, with its variables."""
    core_of_one, no_action = network.initial_state(1), network_input(spec, 1).previous_action
    policy, drawn = _with_its_variables(agent, network, seed)

    def initial_state(num_environments: tf.Tensor) -> State:
        n = num_environments
        state: State = dict(
            core=tuple(tree.flatten(network.initial_state(n))),
            frames=tuple(
                tf.zeros([n, agent.frame_stack - 1, *leaf.shape], leaf.dtype)
                for leaf in tree.flatten(spec.observations)
                if is_image(len(leaf.shape))
            ),
            previous_action=tf.repeat(tf.constant(no_action), n, axis=0),
        )
        if agent.resets_on_life_loss:
            state["lives"] = tf.zeros([n], tf.uint8)
        return state

    def step(
        observation: Nest, reward: tf.Tensor, first: tf.Tensor, state: State
    ) -> tuple[tf.Tensor, State]:
        return step_with_lives(observation, reward, first, None, state)

    def step_with_lives(
        observation: Nest,
        reward: tf.Tensor,
        first: tf.Tensor,
        lives: tf.Tensor | None,
        state: State,
    ) -> tuple[tf.Tensor, State]:
        forgets = first if lives is None else first | (lives < state["lives"])
        begun = initial_state(tf.shape(reward)[0])
        core = where_rows(forgets, begun["core"], state["core"])
        stacked, frames = _push(observation, where_rows(first, begun["frames"], state["frames"]))
        inputs = NetworkInput(
            observation=stacked,
            previous_action=where_rows(first, begun["previous_action"], state["previous_action"]),
            previous_reward=tf.where(first, 0.0, reward),
        )
        output: PolicyOutput = policy(inputs, tree.unflatten_as(core_of_one, core))
        given = agent.environment_action
        action = given(output.action, network.actions) if given else output.action
        after = dict(
            state,
            core=tuple(tree.flatten(output.core_state)),
            frames=frames,
            previous_action=output.action,
        )
        return action, after if lives is None else {**after, "lives": lives}

    def rows(leaf: Any, shape: Sequence[int], *path: Any) -> tf.TensorSpec:
        return tf.TensorSpec([None, *shape], leaf.dtype, "_".join(map(str, path)))

    seen = (
        tree.map_structure_with_path(
            lambda path, leaf: rows(leaf, leaf.shape, "observation", *path), spec.observations
        ),
        tf.TensorSpec([None], tf.float32, "reward"),
        tf.TensorSpec([None], tf.bool, "first"),
    )
    state = tree.map_structure_with_path(
        lambda path, x: rows(x, x.shape[1:], *path), initial_state(tf.constant(1))
    )
    module = tf.Module()
    module.saved = [*network.variables, *drawn]
    module.initial_state = tf.function(
        initial_state, input_signature=[tf.TensorSpec([], tf.int32, "num_environments")]
    )
    module.step = tf.function(step, input_signature=[*seen, state])
    if agent.resets_on_life_loss:
        lives = tf.TensorSpec([None], tf.uint8, "lives")
        module.step_with_lives = tf.function(step_with_lives, input_signature=[*seen, lives, state])
    return module


@without_loops()
def module(player: Player, spec: specs.EnvironmentSpec) -> tf.Module:
    """A player's policy as a model; `spec` is of its run's environments.

    Raises:
      SettingsError: its agent does something that a graph cannot hold.
    """
    try:
        made = _module(player.agent, player.network, spec, player.played.seed)
        made.step.get_concrete_function()
    except (NotImplementedError, TypeError) as error:  # numpy, of somebody's own agent
        raise SettingsError(
            f"{player.agent.name} cannot be exported: its policy and its environment_action must "
            f"compute with TensorFlow alone, and one of them raises {_said(error)}"
        ) from None
    return made


def _said(error: Exception) -> str:
    """An error's type and words, without AutoGraph's lines before them of where it was raised."""
    kind, lines = f"{type(error).__name__}:", map(str.strip, str(error).splitlines())
    found = (line for line in lines if line.startswith(kind))
    return next(found, first_line(error)).removesuffix(":")


@without_loops()
def write(player: Player, folder: pathlib.Path | None = None) -> pathlib.Path:
    """Writes a player's policy as a SavedModel, whole or not at all.

    Args:
      folder: a new one; by default one below the run's exports/.

    Returns:
      The folder.

    Raises:
      SettingsError: its agent does something that a graph cannot hold, or the folder cannot be
        written.
    """
    made = module(player, building.environment_spec(player.run))
    folder = folder or files.vacant(player.run.folder.exports, files.name(player.played), "")
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{folder.name}.", dir=folder.parent) as place:
            unfinished = os.path.join(place, folder.name)
            tf.saved_model.save(made, unfinished)
            os.rename(unfinished, folder)
    except (OSError, tf.errors.OpError) as error:
        raise SettingsError(f"{folder} cannot be written: {disk.said(error)}.") from None
    return folder


def _with_its_variables(
    agent: Agent, network: Network, seed: int
) -> tuple[Policy, list[tf.Variable]]:
    """The policy by which an agent is evaluated, and the variables of its random numbers."""
    drawn: list[tf.Variable] = []

    def note(make: Callable[..., tf.Variable], **arguments: Any) -> tf.Variable:
        drawn.append(make(**arguments))
        return drawn[-1]

    with tf.variable_creator_scope(note):
        policy = agent.make_evaluation_policy(network, seed)
    return policy, drawn


def _push(observation: Nest, frames: tuple[tf.Tensor, ...]) -> tuple[Nest, tuple[tf.Tensor, ...]]:
    """The newest observation as `replay.frames.FrameStack` stacks it, and the frames to keep.

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
