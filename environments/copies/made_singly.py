"""N copies of an environment that is made one at a time: arrays in, arrays out."""

from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
from absl import logging
from ale_py.env import AtariEnv
from gymnasium.vector import AutoresetMode, SyncVectorEnv, VectorWrapper

from environments.copies import conversion
from environments.copies.dead_simulators import Deaths, raised
from environments.copies.leaves import are_checked
from environments.copies.vector import Begun, Step, spread

LIVES = "recurrent_replay/lives"
"""A key of an environment's `info`: how many lives are left. All others are its own."""

_MOST_LIVES = 255  # a row of a stream has one byte for them


class Copies(VectorWrapper):
    """N copies of an environment, stepped one after the other.

    Observations and actions are what `conversion` makes of them. A copy that raises, or shows what
    is not in its space, is replaced: the step truncates its episode and shows again what was seen
    last, and the next one begins another; `infos["lost"]`, [N], counts those. Of what a copy says
    in its own `info` only `LIVES` is read, of ALE's games `lives`: they are `infos["lives"]`.

    Args:
      make: makes one; its spaces are such as `conversion` accepts.
      num_envs: N, the number of copies.
      like: observations and actions of one, as `conversion` describes them; None: as of the
        first that is made. Others differ in nothing but bounds.
      what: they are, in the plural, where one is lost.
    """

    def __init__(
        self,
        make: Callable[[], gymnasium.Env],
        num_envs: int,
        *,
        like: conversion.Spaces | None = None,
        what: str = "environments",
    ) -> None:
        deaths = Deaths(what)

        def convert() -> gymnasium.Env:
            nonlocal like
            converted = _Converted(make())
            like = like or (converted.observation_space, converted.action_space)
            converted.pose_as(like)
            return converted

        copies = [lambda: _Replaced(convert, deaths)] * num_envs
        super().__init__(SyncVectorEnv(copies, autoreset_mode=AutoresetMode.NEXT_STEP))

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Begun:
        seeds: Any = None if seed is None else spread(seed, self.num_envs).tolist()
        return self.env.reset(seed=seeds, options=options)

    def step(self, actions: np.ndarray) -> Step:
        observations, rewards, terminated, truncated, infos = self.env.step(actions)
        return observations, rewards.astype(np.float32), terminated, truncated, infos


def close(env: gymnasium.Env) -> None:
    """Closes an environment; what that raises is noted, since nothing depends on it."""
    try:
        env.close()
    except Exception as error:  # whatever somebody's code raises
        logging.warning("The end of an environment %s", raised(error))


class _Replaced(gymnasium.Wrapper):
    """Goes on with another environment where one raises; CannotPlayError as `Deaths.add`."""

    def __init__(self, make: Callable[[], gymnasium.Env], deaths: Deaths) -> None:
        super().__init__(make())
        self._make = make
        self._broken = False
        self._deaths = deaths
        self._seen: Any = None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        lost = 0
        while True:
            try:
                if self._broken:
                    self.env = self._make()
                    self._broken = False
                self._seen, info = self.env.reset(seed=seed, options=options)
                return self._seen, dict(info, lost=lost)
            except (Exception, SystemExit) as error:  # whatever somebody's code raises
                lost += 1
                self._lose(error)

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        try:
            self._seen, reward, terminated, truncated, info = self.env.step(action)
        except (Exception, SystemExit) as error:  # whatever somebody's code raises
            self._lose(error)
            return self._seen, 0.0, False, True, {"lost": 1}
        self._deaths.step(self, ended=terminated or truncated)
        return self._seen, reward, terminated, truncated, info

    def close(self) -> None:
        close(self.env)

    def _lose(self, error: Exception | SystemExit) -> None:
        close(self.env)
        self._broken = True
        self._deaths.add(self, raised(error), error)


class _Converted(gymnasium.Wrapper):
    """Shows arrays of the kinds that agents know, and takes the actions that they give."""

    def __init__(self, env: gymnasium.Env) -> None:
        super().__init__(env)
        seen = conversion.observed(env.observation_space, checked=are_checked(env))
        acted = conversion.acted(env.action_space)
        self.observation_space, self.action_space = seen.space, acted.space
        self._see, self._act = seen.convert, acted.convert
        self._key = "lives" if isinstance(env.unwrapped, AtariEnv) else LIVES
        self._lives: dict[str, int] = {}
        self._steps = 0  # of this episode

    def pose_as(self, like: conversion.Spaces) -> None:
        """Takes over the spaces of another copy; actions are still kept within bounds of its own.

        Raises:
          ValueError: a clause; they differ in more than bounds.
        """
        conversion.check_alike(like, (self.observation_space, self.action_space))
        self.observation_space, self.action_space = like

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        # As `environments.gym` tries it: one that takes no options can be played too.
        given = {} if options is None else {"options": options}
        observation, info = self.env.reset(seed=seed, **given)
        self._steps = 0
        return self._observed(observation), self._told(info)

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        observation, reward, terminated, truncated, info = self.env.step(self._act(action))
        self._steps += 1
        seen, ends = self._observed(observation), (bool(terminated), bool(truncated))
        return seen, float(reward), *ends, self._told(info)

    def _observed(self, observation: Any) -> Any:
        try:
            return self._see(observation)
        except ValueError as error:
            raise ValueError(f"{error}, after step {self._steps} of an episode") from None

    def _told(self, info: Any) -> dict[str, int]:
        """Reads an `info`; lives that are no number are as many as before."""
        lives = info.get(self._key) if isinstance(info, dict) else None
        if isinstance(lives, int | np.integer) and 0 <= lives <= _MOST_LIVES:
            self._lives = {"lives": int(lives)}
        return dict(self._lives)
