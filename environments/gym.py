"""Environments that are made one at a time: registered with gymnasium, or a user's own.

`gym:<id>` is registered; so is `gym:<module>:<id>`, by a module that gymnasium imports first.
`<package.module>:<function>` is a user's own: a function without arguments that gives one
`gymnasium.Env` or one `dm_env.Environment`.
"""

import contextlib
import difflib
import functools
import importlib
import inspect
import reprlib
from typing import Any, NamedTuple

import dm_env
import gymnasium
from gymnasium import spaces

from environments import conversion, import_path, replaced, trying
from environments.copies import Copies
from environments.from_dm import FromDm

_REGISTERED = "gym:"
_RENDER_MODE = "rgb_array"


def ids() -> list[str]:
    """The ids that are registered, sorted."""
    return sorted(gymnasium.registry)


def may_register(env_id: str) -> bool:
    """Whether an id has the form `<module>:<id>`, whose module may then register it."""
    module, _, rest = env_id.partition(":")
    return import_path.is_module(module) and bool(rest)


class Description(NamedTuple):
    """What is known of an environment that was made and tried.

    Attributes:
      observations: the space of what one copy shows in `make`.
      actions: the space of its actions there.
      frames_per_second: steps of it that people should see in a second.
      draws: whether it offers to draw itself, as an array of pixels.
    """

    observations: spaces.Box | spaces.Dict
    actions: conversion.ActionSpace
    frames_per_second: int
    draws: bool


_known: dict[str, Description | str] = {}  # or why there is none


def describe(name: str) -> Description:
    """Makes, resets and steps an environment, and makes another, unless that was done before.

    Args:
      name: `gym:<id>`, or an import path.

    Raises:
      ValueError: a sentence; it cannot be made here, or cannot be played.
    """
    if import_path.imports_nothing():
        raise ValueError(f"{name!r} is not made to be looked at here.")
    known = _known.get(name)
    if isinstance(known, str):
        raise ValueError(known)
    if known is None:
        known = _known[name] = _described(name)
    return known


def remember(name: str, found: Description | str) -> None:
    """Has `describe` know what another process has found out: a description, or a sentence."""
    _known[name] = found


def forget(name: str) -> None:
    """Has `describe` make an environment anew."""
    _known.pop(name, None)


def is_continuous(name: str) -> bool:
    """Whether an environment is acted in by bounded vectors; raises as `describe`."""
    return isinstance(describe(name).actions, spaces.Box)


def make(name: str, num_envs: int, *, drawing: bool = False) -> Copies:
    """Makes N copies.

    Args:
      name: one that `describe` accepts.
      num_envs: N.
      drawing: whether `render()` will be called, which takes one that draws.
    """
    known = describe(name)
    make_one = functools.partial(_make, name, drawing=drawing)
    like = known.observations, known.actions
    return Copies(make_one, num_envs, like=like, what=f"environments of {name!r}")


def _make(name: str, *, drawing: bool) -> gymnasium.Env:
    # An environment that cannot be drawn need not take a render mode.
    how: dict[str, Any] = {"render_mode": _RENDER_MODE} if drawing else {}
    if not name.startswith(_REGISTERED):
        return _make_own(name, how)
    env_id = name.removeprefix(_REGISTERED)
    _check_registered(name, env_id)
    try:
        return gymnasium.make(env_id, **how)
    except Exception as error:  # whatever somebody's constructor raises
        raise ValueError(
            f"gymnasium cannot make {name!r}: {import_path.first_line(error)}"
        ) from error


def _check_registered(name: str, env_id: str) -> None:
    """Imports the module of `<module>:<id>`, and refuses what is not known then."""
    module, separator, registered = env_id.rpartition(":")
    if not separator:
        return
    try:
        importlib.import_module(module)
    except (Exception, SystemExit) as error:  # whatever somebody's module raises
        raise ValueError(
            f"gymnasium cannot make {name!r}: importing {module!r} raises "
            f"{import_path.first_line(error)}{import_path.advice(error, module)}"
        ) from error
    if registered not in gymnasium.registry:
        near = difflib.get_close_matches(registered, gymnasium.registry, n=3, cutoff=0.5)
        advice = f"did you mean {', '.join(near)}?" if near else "nor anything like it."
        raise ValueError(
            f"gymnasium cannot make {name!r}: {module!r} registers no {registered!r}, {advice}"
        )


def _make_own(path: str, how: dict[str, Any]) -> gymnasium.Env:
    make = import_path.load(path, what="an environment", example="my_package.tasks:make")
    if not callable(make):
        raise ValueError(
            f"{path!r} must be a function without arguments that makes an environment, got "
            f"{reprlib.repr(make)}."
        )
    try:
        takes_how = how and "render_mode" in inspect.signature(make).parameters
        env = make(**how) if takes_how else make()
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
    if how and env.render_mode is None:
        with contextlib.suppress(AttributeError):  # of an environment that sets it itself
            env.unwrapped.render_mode = how["render_mode"]
    return env


def _described(name: str) -> Description:
    env = _make(name, drawing=False)
    try:
        draws = _RENDER_MODE in (*env.metadata.get("render_modes", ()), env.render_mode)
        speed = int(env.metadata.get("render_fps", 30))
    except Exception as error:  # whatever somebody's properties raise
        raise _unusable(name, error) from error
    seen, act = _converted(name, env)
    try:
        trying.play_one_step(env, act)
    except Exception as error:  # whatever somebody's code raises
        raise _unusable(name, error) from error
    replaced.close(env)
    another = _make(name, drawing=False)  # what a constructor draws by chance may differ
    others = _converted(name, another)
    replaced.close(another)
    try:
        conversion.check_alike([(each.space, acted.space) for each, acted in ((seen, act), others)])
    except ValueError as error:
        raise ValueError(f"{name!r} {error}") from error
    return Description(seen.space, act.space, speed, draws)


def _converted(name: str, env: gymnasium.Env) -> tuple[conversion.Observed, conversion.Acted]:
    try:
        space, action_space = env.observation_space, env.action_space
    except Exception as error:  # whatever somebody's properties raise
        raise _unusable(name, error) from error
    try:
        act = conversion.acted(action_space)
        return conversion.observed(space), act
    except ValueError as error:
        raise ValueError(f"{name!r} {error}") from error


def _unusable(name: str, error: Exception) -> ValueError:
    said = import_path.first_line(error)
    return ValueError(f"{name!r} makes an environment that cannot be used: {said}")
