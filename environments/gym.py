"""Environments that are made one at a time: registered with gymnasium, or a user's own.

`gym:<id>` is registered; so is `gym:<module>:<id>`, by a module that gymnasium imports first.
`<package.module>:<function>` is a user's own: a function without arguments that gives one
`gymnasium.Env` or one `dm_env.Environment`.
"""

import functools
import reprlib
from typing import Any, NamedTuple

import dm_env
import gymnasium
import numpy as np
from gymnasium import spaces

from environments import import_path
from environments.copies import Copies, actions, observations
from environments.from_dm import FromDm

_REGISTERED = "gym:"


def ids() -> list[str]:
    """The ids that are registered, sorted."""
    return sorted(gymnasium.registry)


def may_register(env_id: str) -> bool:
    """Whether an id has the form `<module>:<id>`, whose module may then register it."""
    module, _, rest = env_id.partition(":")
    return import_path.is_module(module) and bool(rest)


class _Description(NamedTuple):
    """What an environment says of itself once it is made."""

    observations: spaces.Space
    actions: spaces.Space
    metadata: dict[str, Any]
    draws: bool


def check(name: str) -> None:
    """Makes the environment, unless that was done before, to see that it can be used.

    Args:
      name: `gym:<id>`, or an import path.

    Raises:
      ValueError: it cannot be made here, its actions are neither discrete nor a bounded vector, or
        its observations cannot be flattened into a vector.
    """
    space = _described(name).actions
    if actions(space) is None:
        raise ValueError(
            f"{name!r} must have discrete actions, or one vector of floats within finite bounds, "
            f"got {_in_a_line(space)}."
        )
    observation_space(name)


def observation_space(name: str) -> spaces.Box:
    """The space of what one copy of an environment shows in `make`.

    Raises:
      ValueError: as `check`, whatever the actions are.
    """
    space = _described(name).observations
    wanted = f"{name!r} must have observations that form one array"
    try:
        shown = observations(space)
    except Exception as error:  # a space of somebody's own need not know
        said = import_path.first_line(error)
        raise ValueError(f"{wanted}, but its space cannot say whether: {said}") from error
    if shown is None:
        raise ValueError(f"{wanted}, got {_in_a_line(space)}.")
    return shown


def draws(name: str) -> bool:
    """Whether an environment that `check` accepts can draw itself."""
    return _described(name).draws


def frames_per_second(name: str) -> int:
    """How many steps of it people should see in a second."""
    return int(_described(name).metadata.get("render_fps", 30))


def make(name: str, num_envs: int, *, drawing: bool = False) -> Copies:
    """Makes N copies.

    Args:
      name: one that `check` accepts.
      num_envs: N.
      drawing: whether `render()` will be called, which takes one that `draws`.
    """
    return Copies(functools.partial(_make, name, drawing=drawing), num_envs)


def _make(name: str, *, drawing: bool) -> gymnasium.Env:
    if not name.startswith(_REGISTERED):
        return _make_own(name)
    # An environment that cannot be drawn need not take a render mode.
    how: dict[str, Any] = {"render_mode": "rgb_array"} if drawing else {}
    try:
        return gymnasium.make(name.removeprefix(_REGISTERED), **how)
    except Exception as error:  # whatever somebody's constructor raises
        raise ValueError(
            f"gymnasium cannot make {name!r}: {import_path.first_line(error)}"
        ) from error


def _make_own(path: str) -> gymnasium.Env:
    make = import_path.load(path, what="an environment", example="my_package.tasks:make")
    if not callable(make):
        raise ValueError(
            f"{path!r} must be a function without arguments that makes an environment, got "
            f"{reprlib.repr(make)}."
        )
    try:
        env = make()
        env = FromDm(env) if isinstance(env, dm_env.Environment) else env
    except Exception as error:  # whatever somebody's function raises
        raise ValueError(
            f"{path!r}, called without arguments, makes no environment: "
            f"{import_path.first_line(error)}"
        ) from error
    if not isinstance(env, gymnasium.Env):
        kind = f"{type(env).__module__}.{type(env).__qualname__}"
        raise ValueError(
            f"{path!r} must return a gymnasium.Env or a dm_env.Environment, got a {kind}."
        )
    return env


@functools.cache
def _described(name: str) -> _Description:
    """Makes the environment, once: some take seconds and a lot of memory."""
    env = _make(name, drawing=False)
    try:
        # A registered one is made again to be drawn; a user's own is only ever made in one way.
        can_draw = "rgb_array" in env.metadata.get("render_modes", ())
        draws = can_draw if name.startswith(_REGISTERED) else env.render_mode == "rgb_array"
        description = _Description(env.observation_space, env.action_space, env.metadata, draws)
        if not name.startswith(_REGISTERED):
            _try(env)
        env.close()
    except Exception as error:  # whatever somebody's properties raise
        raise ValueError(
            f"{name!r} makes an environment that cannot be used: {import_path.first_line(error)}"
        ) from error
    return description


def _try(env: gymnasium.Env) -> None:
    """Plays one step of an environment that nobody else has checked. Raises what it raises."""
    begun = env.reset(seed=0)
    if not (isinstance(begun, tuple) and len(begun) == 2):
        raise ValueError(f"reset() must give (observation, info), got {reprlib.repr(begun)}")
    stepped = env.step(env.action_space.sample())
    if not (isinstance(stepped, tuple) and len(stepped) == 5):
        raise ValueError(
            "step() must give (observation, reward, terminated, truncated, info), got "
            f"{reprlib.repr(stepped)}"
        )
    shape = env.observation_space.shape
    for observation in (begun[0], stepped[0]):
        if shape is not None and np.shape(observation) != shape:
            raise ValueError(
                f"an observation must have the space's shape {shape}, got {np.shape(observation)}"
            )


def _in_a_line(space: spaces.Space) -> str:
    return " ".join(str(space).split())  # numpy lays long bounds out in several
