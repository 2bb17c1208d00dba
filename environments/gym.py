"""Environments that are made one at a time: registered with gymnasium, or a user's own.

`gym:<id>` is registered; so is `gym:<module>:<id>`, by a module that gymnasium imports first.
`<package.module>:<function>` is a user's own: a function without arguments that gives one
`gymnasium.Env` or one `dm_env.Environment`.
"""

import contextlib
import dataclasses
import difflib
import functools
import importlib
import inspect
import reprlib
from collections.abc import Callable, Iterator
from typing import Any

import dm_env
import gymnasium
import numpy as np
from gymnasium import spaces

from environments import import_path, kinds
from environments.copies import conversion
from environments.copies.dead_simulators import first_line
from environments.copies.from_dm import FromDm
from environments.copies.leaves import UNCHECKED, NotInSpaceError, are_checked, leaves
from environments.copies.made_singly import Copies, close
from environments.copies.vector import ACTION_MASK, has_mask, masks
from environments.kinds import Description

_REGISTERED = "gym:"
_RENDER_MODE = "rgb_array"


def ids() -> list[str]:
    """The ids that are registered, sorted."""
    return sorted(gymnasium.registry)


def may_register(env_id: str) -> bool:
    """Returns whether an id has the form `<module>:<id>`; the module may register it."""
    module, _, rest = env_id.partition(":")
    return import_path.is_module(module) and bool(rest)


_known: dict[str, Description | str] = {}  # or why there is none


def describe(name: str) -> Description:
    """Makes, resets and steps an environment, and makes a second one, on its first call only.

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
    """Tells `describe` a description, or a sentence, that another process has found."""
    _known[name] = found


def forget(name: str) -> None:
    """Lets `describe` make an environment anew."""
    _known.pop(name, None)


def converters(name: str) -> tuple[conversion.Observed, conversion.Acted]:
    """How agents see one environment of a name, and how it gets their actions.

    Raises:
      ValueError: a sentence; it cannot be made here, or cannot be played.
    """
    env = _make_like(describe(name).observations, name, drawing=False)
    found = _converted(name, env)
    close(env)
    return found


def make(name: str, num_envs: int, *, drawing: bool = False) -> Copies:
    """Makes N copies.

    Args:
      name: one that `describe` accepts.
      num_envs: N.
      drawing: whether `render()` will be called, which takes one that draws.
    """
    known = describe(name)
    make_one = functools.partial(_make_like, known.observations, name, drawing=drawing)
    like = known.observations, known.actions
    return Copies(make_one, num_envs, like=like, what=f"environments of {name!r}")


def _make_like(observations: spaces.Space, name: str, *, drawing: bool) -> gymnasium.Env:
    """Makes an environment, which shows a mask of legal actions if such observations do."""
    env = _make(name, drawing=drawing)
    if has_mask(observations) and not has_mask(env.observation_space):
        env = masks().MaskFromInfo(env)
    return env


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
        raise ValueError(f"gymnasium cannot make {name!r}: {first_line(error)}") from error


def _check_registered(name: str, env_id: str) -> None:
    """Imports the module of `<module>:<id>`, and refuses an id that is not known then."""
    module, separator, registered = env_id.rpartition(":")
    if not separator:
        return
    try:
        importlib.import_module(module)
    except (Exception, SystemExit) as error:  # whatever somebody's module raises
        raise ValueError(
            f"gymnasium cannot make {name!r}: importing {module!r} raises "
            f"{first_line(error)}{import_path.advice(error, module)}"
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
            f"{path!r}, called without arguments, makes no environment: {first_line(error)}"
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
    seen, act = _converted(name, env)
    with _told(name):
        draws = _RENDER_MODE in (*(env.metadata.get("render_modes") or ()), env.render_mode)
        speed = int(env.metadata.get("render_fps") or 30)
        is_masked = not _play_one_step(env, seen, act)
    if is_masked:
        env = masks().MaskFromInfo(env)
        seen, act = _converted(name, env)
        with _told(name):
            _play_one_step(env, seen, act)
    close(env)
    # A constructor may draw its spaces by chance.
    another = _make_like(seen.space, name, drawing=False)
    other_seen, other_act = _converted(name, another)
    close(another)
    try:
        conversion.check_alike((seen.space, act.space), (other_seen.space, other_act.space))
    except ValueError as error:
        raise ValueError(f"{name!r} {error}") from error
    return Description(seen.space, act.space, speed, draws)


def _converted(name: str, env: gymnasium.Env) -> tuple[conversion.Observed, conversion.Acted]:
    with _told(name):
        space, action_space = env.observation_space, env.action_space
    try:
        return conversion.observed(space, action_space), conversion.acted(action_space)
    except ValueError as error:
        raise ValueError(f"{name!r} {error}") from error


@contextlib.contextmanager
def _told(name: str) -> Iterator[None]:
    """Turns any exception of somebody's code into a sentence, a ValueError."""
    try:
        yield
    except Exception as error:
        raise ValueError(
            f"{name!r} makes an environment that cannot be used: {first_line(error)}"
        ) from error


def _play_one_step(env: gymnasium.Env, seen: conversion.Observed, act: conversion.Acted) -> bool:
    """Resets an environment and steps it once, by an action of an agent's.

    Nobody else has checked it, and a run is a late place to find out.

    Returns:
      False, without a step, where `info` has a mask of legal actions that is not shown.

    Raises:
      ValueError: its results break gymnasium's interface, or are not in its spaces.
      Exception: any that it raises.
    """
    begun = env.reset(seed=0)
    if not (isinstance(begun, tuple) and len(begun) == 2 and isinstance(begun[1], dict)):
        raise ValueError(f"reset() must give (observation, info), got {reprlib.repr(begun)}")
    _check_observation(env, begun[0])
    act.space.seed(0)
    action = act.space.sample()
    if has_mask(seen.space):
        action = masks().sample(act.space, seen.convert(begun[0]))
    elif ACTION_MASK in begun[1]:
        return False
    stepped = env.step(act.convert(action))
    if not (isinstance(stepped, tuple) and len(stepped) == 5 and isinstance(stepped[4], dict)):
        raise ValueError(
            "step() must give (observation, reward, terminated, truncated, info), got "
            f"{reprlib.repr(stepped)}"
        )
    observation, reward, terminated, truncated, info = stepped
    _check_observation(env, observation)
    if ACTION_MASK in info and not has_mask(seen.space):
        raise ValueError(f"step()'s info has an {ACTION_MASK}, so reset()'s must have one too")
    if not _is(np.isfinite, reward):
        raise ValueError(f"a reward must be a finite number, got {reprlib.repr(reward)}")
    for name, value in (("terminated", terminated), ("truncated", truncated)):
        if not _is(lambda flag: flag in (True, False), value):
            raise ValueError(f"{name} must be true or false, got {reprlib.repr(value)}")
    return True


def _check_observation(env: gymnasium.Env, observation: Any) -> None:
    for leaf in leaves(env.observation_space, checked=are_checked(env)):
        try:
            leaf.within(observation)
        except NotInSpaceError as error:
            raise ValueError(f"{error}; metadata[{UNCHECKED!r}] = True lets it pass") from error


def _is(condition: Callable[[Any], Any], value: Any) -> bool:
    """Returns whether a value is one number that fulfils a condition."""
    try:
        return np.ndim(value) == 0 and bool(condition(value))
    except (TypeError, ValueError):
        return False


def _make_task(task: kinds.Task, num_envs: int, options: kinds.Options) -> Copies:
    drawing = options.drawing and describe(task.name).draws
    return make(task.name, num_envs, drawing=drawing)


def _check(task: kinds.Task) -> None:
    describe(task.name)


def _check_drawing(task: kinds.Task) -> None:
    """Has an environment that says that it draws itself do so once: what that takes may be missing.

    Of any other one the observations are drawn.
    """
    if not describe(task.name).draws:
        return
    env = _make(task.name, drawing=True)
    try:
        env.reset(seed=0)
        env.render()
    except Exception as error:  # whatever somebody's code raises
        raise ValueError(f"{task.name!r} cannot draw itself here: {first_line(error)}") from error
    finally:
        close(env)


_OWN = kinds.Kind(
    form="<package.module>:<function>",
    make=_make_task,
    knows=lambda task: import_path.is_import_path(task.name),
    check=_check,
    check_drawing=_check_drawing,
    is_continuous=lambda task: isinstance(describe(task.name).actions, spaces.Box),
    images=lambda task: conversion.images(describe(task.name).observations),
    describe=describe,
    remember=remember,
)
_REGISTERED_KIND = dataclasses.replace(
    _OWN,
    form="gym:<id known to gymnasium>, gym:<module>:<id>",
    tasks=ids,
    knows=lambda task: task.rest in ids() or may_register(task.rest),
)
KINDS = {"gym": _REGISTERED_KIND, kinds.OWN: _OWN}
