"""Episodes of Minari's data sets, whose main_data.hdf5 has a group `episode_<i>` for each."""

import pathlib
from collections.abc import Iterator
from typing import Any

import h5py
import numpy as np
import tree
from acme import specs

from environments import gym, suites
from run_folder.recordings import Episode
from run_folder.settings import SettingsError

_IN_TUPLE = "_index_"  # how the parts of a tuple are called


def read(
    path: pathlib.Path, task: str, spec: specs.EnvironmentSpec, begin: int, count: int
) -> Iterator[Episode]:
    """The episodes of a file from one on, as agents see the environment that they are of.

    Args:
      path: of main_data.hdf5.
      task: the environment.
      spec: of it.
      begin: the first episode, from 0.
      count: the most episodes.

    Raises:
      SettingsError: there is no such file, or it is of another environment.
    """
    if not suites.made_singly(task):
        raise SettingsError(f"--minari is for gym:<id> and environments of your own, got {task}.")
    seen, acted = gym.converters(task)
    zeros = np.zeros(spec.actions.shape, spec.actions.dtype)
    # What an environment adds to the numbers of choices; nothing to a vector.
    added = np.asarray(acted.convert(zeros)) * (spec.actions.dtype.kind == "i")
    try:
        with h5py.File(path) as file:
            names = sorted(file, key=lambda name: int(name.rpartition("_")[2]))
            for name in names[begin : begin + count]:
                group = file[name]
                steps = len(group["rewards"])
                rows = [seen.convert(_row(group["observations"], t)) for t in range(steps + 1)]
                actions = np.stack([np.asarray(_row(group["actions"], t)) for t in range(steps)])
                yield Episode(
                    tree.map_structure(lambda *leaves: np.stack(leaves), *rows),
                    (actions - added)
                    .reshape(steps, *spec.actions.shape)
                    .astype(spec.actions.dtype),
                    group["rewards"][:].astype(np.float32),
                    group["terminations"][:].astype(bool),
                    group["truncations"][:].astype(bool),
                    np.zeros(steps + 1, np.uint8),
                )
    except (OSError, KeyError, IndexError, TypeError, ValueError) as error:
        raise SettingsError(
            f"--minari={path} cannot be read as episodes of {task}: {error}"
        ) from None


def _row(part: Any, t: int) -> Any:
    """One step of what an episode holds: an array, a text, or a dictionary or tuple of them."""
    if isinstance(part, h5py.Group):
        if all(name.startswith(_IN_TUPLE) for name in part):
            return tuple(_row(part[f"{_IN_TUPLE}{i}"], t) for i in range(len(part)))
        return {name: _row(part[name], t) for name in part}
    value = part[t]
    return value.decode() if isinstance(value, bytes) else value
