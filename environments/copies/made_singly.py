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
from environments.copies.vector import Begun, Step, has_mask, masks, spread

LIVES = "recurrent_replay/lives"
"""A key of an environment's `info`: how many lives are left. All others are its own."""

_MOST_LIVES = 255  # a row of a stream has one byte for them


class Copies(VectorWrapper):
    """N copies of an environment, stepped one after the other.

    Observations and actions are converted by `conversion`. A copy that raises, or whose observation
    is not in its space or shows no legal action, is replaced: the step truncates its episode and
    repeats the observation before, and the next step begins another episode; `infos["lost"]`, [N],
    counts these. Of a copy's own `info` only `LIVES` is read, or `lives` of ALE's games: they are
    `infos["lives"]`. `masks.MaskFromInfo` shows a mask that is there.

    Args:
      make: makes one; `conversion` accepts its spaces.
      num_envs: N, the number of copies.
      like: the converted spaces of one; None takes those of the first that is made. The copies
        differ in nothing but bounds.
      what: a plural that names them, for the report of a loss.
    """

    def __init__(
        self,
        make: Callable[[], gymnasium.Env],
        num_envs: int,
        *,
        like: conversion.Spaces | None = None,
        what: str = "environments",
    ) -> None:
        deaths, shared = Deaths(what), [like] if like else []
        copies = [lambda: _Copy(make, shared, deaths)] * num_envs
        super().__init__(SyncVectorEnv(copies, autoreset_mode=AutoresetMode.NEXT_STEP))

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Begun:
        seeds: Any = None if seed is None else spread(seed, self.num_envs).tolist()
        return self.env.reset(seed=seeds, options=options)

    def step(self, actions: np.ndarray) -> Step:
        observations, rewards, terminated, truncated, infos = self.env.step(actions)
        return observations, rewards.astype(np.float32), terminated, truncated, infos


def close(env: gymnasium.Env) -> None:
    """Closes an environment; an exception is only logged, since nothing depends on it."""
    try:
        env.close()
    except Exception as error:  # whatever somebody's code raises
        logging.warning("The end of an environment %s", raised(error))


class _Copy(gymnasium.Wrapper):
    """One environment, with its observations and actions converted; replaced where it raises.

    Raises CannotPlayError as `Deaths.add` does.

    Args:
      make: makes an environment.
      like: the spaces of all copies, which the first one adds. Actions are still kept within the
        bounds of each environment's own.
      deaths: counts those that raised.
    """

    def __init__(
        self, make: Callable[[], gymnasium.Env], like: list[conversion.Spaces], deaths: Deaths
    ) -> None:
        super().__init__(make())
        self._make, self._like, self._deaths = make, like, deaths
        self._seen: Any = None
        self._take(self.env)

    def _take(self, env: gymnasium.Env) -> None:
        """Goes on with an environment; ValueError, a clause, if its spaces are not the copies'."""
        self.env = env  # which is closed where they are not
        space, actions = env.observation_space, env.action_space
        seen = conversion.observed(space, actions, checked=are_checked(env))
        acted = conversion.acted(actions)
        if not self._like:
            self._like.append((seen.space, acted.space))
        conversion.check_alike(self._like[0], (seen.space, acted.space))
        self.observation_space, self.action_space = self._like[0]
        self._see, self._act = seen.convert, acted.convert
        self._key = "lives" if isinstance(env.unwrapped, AtariEnv) else LIVES
        self._lives: dict[str, int] = {}
        self._steps = 0  # of this episode
        self._is_broken = False

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        # As `environments.gym` tries it: one that takes no options can be played too.
        given = {} if options is None else {"options": options}
        lost = 0
        while True:
            try:
                if self._is_broken:
                    self._take(self._make())
                observation, info = self.env.reset(seed=seed, **given)
                self._steps = 0
                self._seen = self._observed(observation)
                return self._seen, {**self._told(info), "lost": lost}
            except (Exception, SystemExit) as error:  # whatever somebody's code raises
                lost += 1
                self._lose(error)

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        try:
            observation, reward, terminated, truncated, info = self.env.step(self._act(action))
            self._steps += 1
            ends, told = (bool(terminated), bool(truncated)), self._told(info)
            seen, paid = self._observed(observation, ended=any(ends)), float(reward)
        except (Exception, SystemExit) as error:  # whatever somebody's code raises
            self._lose(error)
            return self._seen, 0.0, False, True, {**self._lives, "lost": 1}
        self._deaths.step(self, ended=any(ends))
        self._seen = seen
        return seen, paid, *ends, told

    def close(self) -> None:
        close(self.env)

    def _lose(self, error: Exception | SystemExit) -> None:
        close(self.env)
        self._is_broken = True
        self._deaths.add(self, raised(error), error)

    def _observed(self, observation: Any, *, ended: bool = False) -> Any:
        try:
            seen = self._see(observation)
            # Copies: an environment may give the same array at each step.
            if isinstance(seen, dict):
                seen = {name: np.array(part) for name, part in seen.items()}
            else:
                seen = np.array(seen)
            if has_mask(seen) and not ended:
                masks().check_any(seen)
            return seen
        except ValueError as error:
            raise ValueError(f"{error}, after step {self._steps} of an episode") from None

    def _told(self, info: Any) -> dict[str, int]:
        """Reads an `info`; lives that are no number are as many as before."""
        lives = info.get(self._key) if isinstance(info, dict) else None
        if isinstance(lives, int | np.integer) and 0 <= lives <= _MOST_LIVES:
            self._lives = {"lives": int(lives)}
        return dict(self._lives)
