"""Recorded episodes: a folder with a file for each, and one that says what was played.

    recording.json       the task, and the form of what it shows and takes
    episode_000000.npz   an `Episode`, an array for each field; of a dictionary of observations
                         `observations/<name>`

Each is there whole or not at all, so recording goes on where it was cut. Fields are called as
Minari calls them, but for the last three; all is as `environments.suites` has it.
"""

import contextlib
import io
import json
import pathlib
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import tree
from acme import specs

from environments.copies.vector import ACTION_MASK, has_mask
from run_folder import disk, texts
from run_folder.texts import SettingsError, reading

_ABOUT, _OBSERVATIONS = "recording.json", "observations"


class Episode(NamedTuple):
    """An episode of T steps."""

    observations: Any  # [T + 1, ...], or a dictionary of such: what each action was taken on, and
    actions: np.ndarray  # [T] or [T, D]                          what the last one led to
    rewards: np.ndarray  # [T] float32, raw
    terminated: np.ndarray  # [T] bool
    truncated: np.ndarray  # [T] bool
    lives: np.ndarray  # [T + 1] uint8; zeros where there are none


def begin(folder: pathlib.Path, task: str, spec: specs.EnvironmentSpec) -> int:
    """Makes a folder for episodes of a task, or goes on with one; returns how many it holds.

    Raises:
      SettingsError: it holds episodes of another task or form, or something else, or cannot be
        made.
    """
    about = {"env": task, **_form(spec)}
    if (folder / _ABOUT).exists():
        check(folder, (task,), spec, least=0)
    elif folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise SettingsError(f"{folder} holds something else than episodes: name a new folder.")
    else:
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise SettingsError(f"{folder} cannot be made: {error.strerror}.") from None
        disk.write(folder / _ABOUT, json.dumps(about, indent=2) + "\n")
    return len(files(folder))


@contextlib.contextmanager
def alone(folder: pathlib.Path) -> Iterator[None]:
    """Keeps other processes from adding to a folder that `begin` has made.

    Raises:
      SettingsError: one is adding.
    """
    with contextlib.ExitStack() as lock:
        try:  # not its recording.json: another process that begins at the same time replaces that
            lock.enter_context(disk.locked(folder))
        except BlockingIOError:
            raise SettingsError(
                f"Another process is recording into {folder}: wait for it, or name another folder."
            ) from None
        except OSError:
            pass  # a file system without locks
        yield


def append(folder: pathlib.Path, episode: Episode) -> None:
    """Adds an episode to a folder."""
    arrays = episode._asdict()
    if isinstance(episode.observations, dict):
        parts = arrays.pop(_OBSERVATIONS)
        arrays |= {f"{_OBSERVATIONS}/{name}": part for name, part in parts.items()}
    content = io.BytesIO()
    np.savez_compressed(content, **arrays)
    number = 1 + max((int(path.stem.rpartition("_")[2]) for path in files(folder)), default=-1)
    disk.write(folder / f"episode_{number:06}.npz", content.getvalue())


def files(folder: pathlib.Path) -> list[pathlib.Path]:
    """The files of a folder's episodes, in the order in which they were recorded."""
    return sorted(folder.glob("episode_*[0-9].npz"))


def check(
    folder: pathlib.Path, tasks: Sequence[str], spec: specs.EnvironmentSpec, *, least: int = 1
) -> str:
    """The task of a folder's episodes: one of `tasks`, and of the form of `spec`.

    Raises:
      SettingsError: there are no episodes, or others.
    """
    with reading(folder / _ABOUT, absent=f"{folder} holds no episodes: launch.record makes some."):
        about = texts.read_json(folder / _ABOUT)
        if not isinstance(about, dict):
            raise ValueError(f"an object was expected, got {about!r}")
        task, wanted = about.get("env"), _form(spec)
        if task not in tasks:
            raise ValueError(f"env must be one of {', '.join(tasks)}, got {task!r}")
        for name, form in wanted.items():
            if about.get(name) != form:
                raise ValueError(
                    f"{name} must be {form}, as this run's {task} has, got {about.get(name)}"
                )
    if len(files(folder)) < least:
        raise SettingsError(f"{folder} holds no episode yet: launch.record adds some.")
    return str(task)


def read(path: pathlib.Path, spec: specs.EnvironmentSpec) -> Episode:
    """An episode of a file.

    Raises:
      SettingsError: it is damaged, or of another form.
    """
    with reading(path):
        try:
            found = np.load(path)
            if not isinstance(found, np.lib.npyio.NpzFile):
                raise ValueError("it holds one array and not an episode's")
            with found:
                arrays = dict(found)
        except (zipfile.BadZipFile, zlib.error, EOFError) as error:
            raise ValueError(str(error)) from None
        steps = len(arrays.get("rewards", ()))
        wanted = {
            "actions": ((steps, *spec.actions.shape), spec.actions.dtype),
            "rewards": ((steps,), np.float32),
            "terminated": ((steps,), np.bool_),
            "truncated": ((steps,), np.bool_),
            "lives": ((steps + 1,), np.uint8),
        }
        for name, part in _parts(spec).items():
            wanted[name] = ((steps + 1, *part.shape), part.dtype)
        for name, (shape, dtype) in wanted.items():
            array = arrays.get(name, np.zeros(0))
            if not steps or array.shape != shape or array.dtype != dtype:
                raise ValueError(
                    f"{name} must be {np.dtype(dtype)} {list(shape)}, of at least one step, got "
                    f"{array.dtype} {list(array.shape)}"
                )
        if isinstance(spec.observations, dict):
            seen: Any = {name: arrays.pop(f"{_OBSERVATIONS}/{name}") for name in spec.observations}
        else:
            seen = arrays.pop(_OBSERVATIONS)
        episode = Episode(seen, *(arrays[name] for name in Episode._fields[1:]))
        check_steps(episode, spec)
    return episode


def check_steps(episode: Episode, spec: specs.EnvironmentSpec) -> None:
    """Checks that nobody who learns from an episode of the right form learns nonsense.

    Raises:
      ValueError: a clause; something is not finite, or an action out of bounds or illegal.
    """
    for name, part in zip(("rewards", "actions", "observations"), episode[2::-1], strict=True):
        if not all(np.isfinite(leaf).all() for leaf in tree.flatten(part)):
            raise ValueError(f"{name} must be finite")
    actions = episode.actions
    if (actions < spec.actions.minimum).any() or (actions > spec.actions.maximum).any():
        raise ValueError(f"actions must be within {_form(spec)['actions']}")
    if has_mask(episode.observations):
        mask = episode.observations[ACTION_MASK][:-1]
        legal = mask[np.arange(len(actions)), actions] != 0
        if not legal.all():
            step = int(legal.argmin())
            raise ValueError(
                f"actions must be legal, and {actions[step]} at step {step} is not: "
                f"{ACTION_MASK} is {mask[step].tolist()} there"
            )


def lengths(folder: pathlib.Path) -> list[int]:
    """The steps of each episode of a folder."""
    found = []
    for path in files(folder):
        with np.load(path) as arrays:
            found.append(len(arrays["rewards"]))
    return found


def _parts(spec: specs.EnvironmentSpec) -> dict[str, specs.Array]:
    """The arrays of an observation by their names in a file."""
    if not isinstance(spec.observations, dict):
        return {_OBSERVATIONS: spec.observations}
    return {f"{_OBSERVATIONS}/{name}": part for name, part in sorted(spec.observations.items())}


def _form(spec: specs.EnvironmentSpec) -> dict[str, str]:
    """Types and shapes of what is seen, and the actions' with their bounds."""
    low, high = (np.unique(x).tolist() for x in (spec.actions.minimum, spec.actions.maximum))
    form = {name: f"{part.dtype} {list(part.shape)}" for name, part in _parts(spec).items()}
    return form | {"actions": f"{spec.actions.dtype} {list(spec.actions.shape)} {low} to {high}"}
