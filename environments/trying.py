"""One step of an environment that nobody else has checked, so that a run does not find it out."""

import reprlib
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np

from environments import conversion
from environments.leaves import UNCHECKED, NotInSpaceError, are_checked, leaves


def play_one_step(env: gymnasium.Env, act: conversion.Acted) -> None:
    """Resets an environment and steps it once, by an action of an agent's.

    Raises:
      ValueError: what it gives is not what gymnasium asks for, or what its spaces say.
      Exception: whatever it raises.
    """
    begun = env.reset(seed=0)
    if not (isinstance(begun, tuple) and len(begun) == 2 and isinstance(begun[1], dict)):
        raise ValueError(f"reset() must give (observation, info), got {reprlib.repr(begun)}")
    _check_observation(env, begun[0])
    act.space.seed(0)
    stepped = env.step(act.convert(act.space.sample()))
    if not (isinstance(stepped, tuple) and len(stepped) == 5 and isinstance(stepped[4], dict)):
        raise ValueError(
            "step() must give (observation, reward, terminated, truncated, info), got "
            f"{reprlib.repr(stepped)}"
        )
    observation, reward, terminated, truncated, _ = stepped
    _check_observation(env, observation)
    if not _is(np.isfinite, reward):
        raise ValueError(f"a reward must be a finite number, got {reprlib.repr(reward)}")
    for name, value in (("terminated", terminated), ("truncated", truncated)):
        if not _is(lambda flag: flag in (True, False), value):
            raise ValueError(f"{name} must be true or false, got {reprlib.repr(value)}")


def _check_observation(env: gymnasium.Env, observation: Any) -> None:
    for leaf in leaves(env.observation_space, checked=are_checked(env)):
        try:
            leaf.within(observation)
        except NotInSpaceError as error:
            raise ValueError(f"{error}; metadata[{UNCHECKED!r}] = True lets it pass") from error


def _is(condition: Callable[[Any], Any], value: Any) -> bool:
    """Whether one number fulfils a condition; what is no number does not."""
    try:
        return np.ndim(value) == 0 and bool(condition(value))
    except (TypeError, ValueError):
        return False
