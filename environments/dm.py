"""Environments in Acme's terms: their specs, and one of `suites` behind dm_env's interface.

It is not part of `suites`, which refuses a misspelt name sooner than Acme can be imported.
"""

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

import dm_env
import numpy as np
import tree
from acme import specs
from gymnasium.vector import VectorEnv

from environments import multitask, suites
from environments.copies.spec import spec_of


def make_environment_spec(name: str, *, full_action_space: bool = True) -> specs.EnvironmentSpec:
    """The spec of one environment in Acme's terms, or the spec that a suite's tasks share.

    Args:
      name: for example `atari:pong` or `atari57`.
      full_action_space: as for `suites.make`.

    Raises:
      ValueError: the name is unknown, or two tasks differ in their observations or actions.
    """
    suites.check(name)
    samples = _samples(suites.parse(name), full_action_space)
    return spec_of(*multitask.shared_spaces(samples))


def _samples(
    tasks: Sequence[suites.Task], full_action_space: bool
) -> Iterator[tuple[str, VectorEnv]]:
    """Makes one environment of each task, each closed before the next."""
    games = 0
    for task in tasks:
        games += task.kind == "atari"
        if full_action_space and task.kind == "atari" and games > 1:
            continue  # as the first game, and 57 games take seconds to load
        with contextlib.closing(
            suites.make(task.name, 1, seed=0, full_action_space=full_action_space)
        ) as env:
            yield task.name, env


def make(
    name: str, *, seed: int = 0, full_action_space: bool = True, full_rendering: bool = False
) -> "DmEnvironment":
    """Makes one environment by its name, with the arguments and errors of `suites.make`."""
    environment = suites.make(
        name, 1, seed=seed, full_action_space=full_action_space, full_rendering=full_rendering
    )
    spec = make_environment_spec(name, full_action_space=full_action_space)
    return DmEnvironment(environment, spec)


class DmEnvironment(dm_env.Environment):
    """A `VectorEnv` of one environment as dm_env sees it: no batch axis, resets when told to.

    Termination gives discount 0; truncation ends an episode with discount 1. A step where no
    episode is under way begins one.

    Args:
      environment: resets on the step after an episode's end.
      spec: of its observations and actions.
    """

    def __init__(self, environment: VectorEnv, spec: specs.EnvironmentSpec) -> None:
        self._environment = environment
        self._spec = spec
        self._started = False
        self._ended = False

    def reset(self) -> dm_env.TimeStep:
        """Begins an episode; one that has not ended is given up."""
        if self._ended:  # the next step resets, whatever its action
            action = self._batch(self._spec.actions.generate_value())
            observation = self._environment.step(action)[0]
        else:
            observation = self._environment.reset()[0]
        self._started, self._ended = True, False
        return dm_env.restart(_only(observation))

    def step(self, action: Any) -> dm_env.TimeStep:
        if self._ended or not self._started:
            return self.reset()
        outcome = self._environment.step(self._batch(action))
        observation, reward, terminated, truncated, _ = outcome
        self._ended = bool(terminated[0] or truncated[0])
        end = dm_env.termination if terminated[0] else dm_env.truncation
        return (end if self._ended else dm_env.transition)(float(reward[0]), _only(observation))

    def observation_spec(self) -> Any:
        return self._spec.observations

    def action_spec(self) -> specs.DiscreteArray | specs.BoundedArray:
        return self._spec.actions

    def _batch(self, action: Any) -> np.ndarray:
        """A batch of one action, [1] or [1, D]."""
        return np.asarray(action, self._spec.actions.dtype)[np.newaxis]

    def close(self) -> None:
        self._environment.close()


def _only(observation: Any) -> Any:
    """The one row of a batch."""
    return tree.map_structure(lambda leaf: leaf[0], observation)
