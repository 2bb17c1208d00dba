"""A policy that is stepped by hand: an environment's observations in, its actions out."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import tensorflow as tf
import tree
from acme import specs

from agents.networks.parts import masks
from analysis.playing import saved_model
from analysis.playing.evaluation import Player
from environments import gym, suites
from environments.copies.vector import has_mask
from run_folder import building

State = Any
"""All that lasts from step to step; of one environment without, of N with a first axis."""


class Policy:
    """Acts as a run's evaluation does, for one environment or for several at once.

    A step is the one of an exported policy (`saved_model`). What a user's own environment shows is
    converted as in the run, and so are actions.

    Args:
      player: who acts.

    Raises:
      SettingsError: its agent does something that a graph cannot hold.
    """

    def __init__(self, player: Player) -> None:
        self._spec = building.environment_spec(player.run)
        self._module = saved_model.module(player, self._spec)
        self._see = self._act = lambda value: value
        task, *_ = suites.parse(player.run.env)
        if task.is_made_singly:
            seen, acted = gym.converters(task.name)
            self._see, self._act = seen.convert, acted.convert

    def initial_state(self, batch_size: int | None = None) -> State:
        """The state at an episode's start, of one environment or of a batch of them."""
        if batch_size is not None and batch_size < 1:
            raise ValueError(
                f"batch_size must be at least 1, or None for one environment, got {batch_size}."
            )
        state = self._module.initial_state(tf.constant(batch_size or 1))
        return state if batch_size else tree.map_structure(lambda x: x[0], state)

    def step(
        self,
        observation: Any,
        state: State,
        reward: Any = 0.0,
        first: Any = False,
        lives: Any = None,
    ) -> tuple[Any, State]:
        """Chooses an action.

        Args:
          observation: as the environment gives it; of a batch each of its parts with a first axis.
          state: of the step before, or `initial_state`. It says whether this is a batch of N.
          reward: for the action before, undiscounted and unclipped; `[N]` of a batch.
          first: whether an episode begins here, `[N]` of a batch. There the state begins anew and
            the reward is ignored; a state of `initial_state` is new by itself.
          lives: that are left, `[N]` of a batch; for an agent whose memory ends with a life.

        Returns:
          The action as the environment takes it, `[N, ...]` of a batch, and the next state.

        Raises:
          ValueError: the observation is not of the run's environment.
        """
        is_batch = len(state["previous_action"].shape) > len(self._spec.actions.shape)
        if not is_batch:
            state = tree.map_structure(lambda x: x[tf.newaxis], state)
        n = int(state["previous_action"].shape[0])
        each = _split(observation, n) if is_batch else [observation]
        rows = [self._row(one) for one in each]
        seen = tree.map_structure(lambda *leaves: np.stack(leaves), *rows)
        told = [np.broadcast_to(np.float32(reward), n), np.broadcast_to(np.bool_(first), n)]
        if lives is None or "lives" not in state:
            actions, after = self._module.step(seen, *told, state)
        else:
            left = np.broadcast_to(np.uint8(lives), n)
            actions, after = self._module.step_with_lives(seen, *told, left, state)
        taken = [self._act(action) for action in actions.numpy()]
        if is_batch:
            return np.stack(taken), after
        return taken[0], tree.map_structure(lambda x: x[0], after)

    def _row(self, observation: Any) -> Any:
        """One environment's observation as the network sees it."""
        row, spec = self._see(observation), self._spec.observations
        try:
            tree.assert_same_structure(row, spec, check_types=False)
            array = tree.map_structure(_cast, row, spec)
        except (TypeError, ValueError):
            raise ValueError(f"An observation must be {_form(spec)}, got {row!r}.") from None
        if _form(array) != _form(spec):
            raise ValueError(f"An observation must be {_form(spec)}, got {_form(array)}.")
        if has_mask(array):
            masks().check_any(array)
        return array


def _cast(leaf: Any, of: specs.Array) -> np.ndarray:
    """Numbers in a spec's type; ValueError where it does not hold them, as bytes no fractions."""
    given = np.asarray(leaf)
    cast = given.astype(of.dtype)
    if cast.dtype.kind != "f" and (cast != given).any():
        raise ValueError
    return cast


def _split(observation: Any, n: int) -> list[Any]:
    """The observations of N environments; gymnasium has N texts as a tuple."""
    if isinstance(observation, Mapping):
        parts = {name: _split(part, n) for name, part in observation.items()}
        return [{name: part[i] for name, part in parts.items()} for i in range(n)]
    are_texts = isinstance(observation, tuple) and all(isinstance(x, str) for x in observation)
    if isinstance(observation, tuple) and not are_texts:
        return list(zip(*(_split(part, n) for part in observation), strict=True))
    if np.shape(observation)[:1] != (n,):
        raise ValueError(
            f"The observations of {n} environments must have a first axis of {n}, got "
            f"{_form(observation)}."
        )
    return list(observation)


def _form(nest: Any) -> str:
    """Types and shapes, as `uint8 [10, 5]` or in a dictionary by name."""
    if isinstance(nest, dict):
        parts = (f"{name}: {_form(part)}" for name, part in sorted(nest.items()))
        return f"{{{', '.join(parts)}}}"
    shape = getattr(nest, "shape", np.shape(nest))
    return f"{np.dtype(getattr(nest, 'dtype', type(nest)))} {[*shape]}"
