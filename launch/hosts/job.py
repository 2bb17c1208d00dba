"""A job: a run's program as files, as its hosts read them; `launch.hosts.artefact` writes it.

Nothing here imports TensorFlow: `launch.cluster`, which runs before every process, is quick.
"""

import json
import os
import pathlib
import pickle
import stat
from collections.abc import Callable
from typing import NamedTuple

from recurrent_replay import command
from run_folder.texts import SettingsError

POOL_FILE = "pool.json"
NODES_FILE = "job.pkl"
SECRET_FILE = "secret"  # which the run's processes know, and nobody else
POOL_NAMES = ("workerpool0", "workerpool1", "workerpool2", "workerpool3")  # Vertex AI has no more


class JobError(SettingsError):
    """A job, or a place in it, that does not exist."""


class PoolFolder(NamedTuple):
    """The files of one pool."""

    path: pathlib.Path
    kind: str  # replay, learner or actor: what its hosts are made for
    run_dir: str
    labels: list[str]  # of its nodes, <group>/<index in the group>

    def check(self) -> None:
        """Refuses nodes that others can write: whoever writes a pickle runs code that loads it.

        Raises:
          JobError: somebody else could have written them.
        """
        for path in (self.path, self.path / NODES_FILE, self.path / SECRET_FILE):
            if not path.exists():
                raise JobError(f"{path} is not there: write the job again.")
            status = path.stat()
            if status.st_uid not in (os.geteuid(), 0):
                raise JobError(
                    f"{path} belongs to user {status.st_uid}, and user {os.geteuid()} does not "
                    "load it: write the job as the user who runs it."
                )
            if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
                raise JobError(
                    f"{path} can be written by others ({stat.filemode(status.st_mode)}) and is not "
                    f"loaded: chmod go-w {path}, once you know that nobody did."
                )

    def secret(self) -> str:
        """The secret that its nodes show when they call each other; `check` has been asked."""
        return (self.path / SECRET_FILE).read_text()

    def node(self, index: int) -> Callable[[], None]:
        """The function that is the node of that index; `check` has been asked."""
        functions = pickle.loads((self.path / NODES_FILE).read_bytes())
        node: Callable[[], None] = functions[index]
        return node


def read(folder: "str | os.PathLike[str] | None") -> dict[str, PoolFolder]:
    """The pools of a job, or those of them that a host has been given, by name.

    Raises:
      JobError: when no folder is given, or it holds none, or a damaged one.
    """
    if not folder:
        raise JobError("--job must be given: the folder that launch.train --job=... wrote.")
    path = pathlib.Path(folder)
    files = sorted(path.glob(f"*/{POOL_FILE}"))
    if not files:
        raise JobError(
            f"--job={path} holds no job: there is no {path / POOL_NAMES[0] / POOL_FILE}. "
            f"{command('train')} --job=<folder> with the settings of a run writes one."
        )
    return {file.parent.name: _pool(file) for file in files}


def _pool(file: pathlib.Path) -> PoolFolder:
    try:
        said = json.loads(file.read_text())
        labels = [str(label) for label in said["labels"]]
        return PoolFolder(file.parent, str(said["kind"]), str(said["run_dir"]), labels)
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise JobError(
            f"{file} cannot be read: it must say kind, run_dir and labels, as launch.train --job "
            f"writes them ({type(error).__name__}: {error})."
        ) from None
