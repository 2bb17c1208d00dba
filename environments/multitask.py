"""Several tasks in one vector environment."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import tree
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from environments.copies.dead_simulators import CannotPlayError
from environments.copies.vector import Begun, Observations, Step, TwoPart, in_a_line, spread


def shared_spaces(tasks: Iterable[tuple[str, VectorEnv]]) -> tuple[spaces.Space, spaces.Space]:
    """The (observation space, action space) of one environment of any of the tasks.

    Args:
      tasks: names and environments, at least one; none is asked for after one that differs.

    Raises:
      ValueError: a sentence that quotes the first two tasks that differ.
    """
    tasks = iter(tasks)
    first, env = next(tasks)
    expected = env.single_observation_space, env.single_action_space
    for name, env in tasks:
        found = env.single_observation_space, env.single_action_space
        if found != expected:
            few = found[0] == expected[0] and first.startswith("atari:")
            raise ValueError(
                "The tasks of a suite must have the same observations and actions, but "
                f"{first!r} has {' and '.join(map(in_a_line, expected))}, while {name!r} has "
                f"{' and '.join(map(in_a_line, found))}."
                + (" All Atari games share the full set of 18 actions." if few else "")
            )
    return expected


def _concatenate(observations: Sequence[Observations]) -> Observations:
    return tree.map_structure(lambda *leaves: np.concatenate(leaves), *observations)


class MultiTaskEnv(VectorEnv):
    """Joins the environments of several tasks; the rows of a task stay together.

    Every task that can is sent its actions before the first answer is waited for, so that small
    parts keep all cores busy. Of the infos, `lives` and `lost`, int [N], stay: 0 where a task has
    none. A CannotPlayError of `reset` or `step` says which task; the environment is of no use
    after it.

    Args:
      tasks: from each task's name to its environments, which autoreset on the next step.

    Raises:
      ValueError: two tasks differ in their observations or actions.
    """

    def __init__(self, tasks: Mapping[str, VectorEnv]) -> None:
        observation_space, action_space = shared_spaces(tasks.items())
        self._names = list(tasks)
        self._envs = list(tasks.values())
        self._ends = np.cumsum([env.num_envs for env in self._envs])
        self.num_envs = int(self._ends[-1])
        self.metadata = {"autoreset_mode": AutoresetMode.NEXT_STEP}
        self.single_observation_space = observation_space
        self.single_action_space = action_space
        self.observation_space = batch_space(observation_space, self.num_envs)
        self.action_space = batch_space(action_space, self.num_envs)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Begun:
        count = len(self._envs)
        seeds = [None] * count if seed is None else spread(seed, count).tolist()
        begun = self._of_each(lambda env, own: env.reset(seed=own, options=options), seeds)
        observations, infos = zip(*begun, strict=True)
        return _concatenate(observations), self._join(infos)

    def step(self, actions: np.ndarray) -> Step:
        # Checked before any is sent: a task that refused its part would leave others half stepped.
        if not self.action_space.contains(actions):
            raise ValueError(f"Actions must lie in {self.action_space}, got {actions!r}.")
        parts = np.split(actions, self._ends[:-1])
        self._of_each(lambda env, part: env.send(part) if isinstance(env, TwoPart) else None, parts)
        stepped = self._of_each(
            lambda env, part: env.recv() if isinstance(env, TwoPart) else env.step(part), parts
        )
        observations, *arrays, infos = zip(*stepped, strict=True)
        rewards, terminated, truncated = map(np.concatenate, arrays)
        return _concatenate(observations), rewards, terminated, truncated, self._join(infos)

    def _of_each(
        self, call: Callable[[VectorEnv, Any], Any], arguments: Sequence[Any]
    ) -> list[Any]:
        """Calls a function with each task's environments and its argument."""
        found = []
        for name, env, argument in zip(self._names, self._envs, arguments, strict=True):
            try:
                found.append(call(env, argument))
            except CannotPlayError as error:
                error.task = name
                raise
        return found

    def _join(self, infos: Sequence[dict[str, Any]]) -> dict[str, Any]:
        none = (np.zeros(env.num_envs, np.int32) for env in self._envs)
        parts = list(zip(infos, none, strict=True))
        return {
            key: np.concatenate([info.get(key, zeros) for info, zeros in parts])
            for key in ("lives", "lost")
        }

    def close_extras(self, **kwargs: Any) -> None:
        for env in self._envs:
            env.close(**kwargs)
