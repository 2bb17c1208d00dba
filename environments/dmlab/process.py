"""One DeepMind Lab engine in a process of its own: `python -m environments.dmlab.process <fd>`.

The engine ends its process at an error of its own, and keeps the interpreter's lock while it
steps. So the player is another process, which asks over a pipe; the argument is the pipe's
descriptor:

    asked                          answered
    `serve`'s keyword arguments    nothing
    ("reset", seed)                (image, instruction)
    ("step", native action)        (reward, (image, instruction)), at an end (reward, None)

An engine that raises ends the process too. So does the end of the pipe: none outlives its player.
"""

import contextlib
import os
import shutil
import sys
import tempfile
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np

FRAMES_PER_STEP = 4
_MAX_BYTES = 4 * 2**30  # of compiled maps: a few thousand


def serve(
    connection: Connection, level: str, config: dict[str, str], temp_folder: str, cache: str
) -> None:
    """Answers until the pipe ends, which raises EOFError.

    Args:
      connection: the pipe.
      level: the engine's name of it, a path.
      config: the engine's settings.
      temp_folder: where the engine may write.
      cache: the folder of compiled maps.
    """
    import deepmind_lab  # here, since those who start this process may not have it

    lab = deepmind_lab.Lab(
        level,
        ["RGB_INTERLEAVED", "INSTR"],
        config,
        level_cache=LevelCache(Path(cache)),
        temp_folder=temp_folder,
    )
    while True:
        verb, value = connection.recv()
        if verb == "reset":
            _forget_output()
            lab.reset(seed=value)
            connection.send(_observe(lab))
        else:
            reward = lab.step(np.array(value, np.intc), num_steps=FRAMES_PER_STEP)
            # Past the end there is nothing to observe: the engine raises.
            connection.send((reward, _observe(lab) if lab.is_running() else None))


def _observe(lab: Any) -> tuple[np.ndarray, str]:
    observations = lab.observations()
    return observations["RGB_INTERLEAVED"], observations["INSTR"]


def _forget_output() -> None:
    """Empties the file that standard error is: only the words before an end are of interest."""
    with contextlib.suppress(OSError):  # it is no file
        os.ftruncate(sys.stderr.fileno(), 0)
        os.lseek(sys.stderr.fileno(), 0, os.SEEK_SET)


def default_cache() -> Path:
    """The user's folder of compiled maps: below `XDG_CACHE_HOME`, or else below `~/.cache`."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "recurrent-replay" / "dmlab-levels"


class LevelCache:
    """A folder of compiled maps that any number of engines share.

    The engine asks before it compiles a map, and tells afterwards. A map's key names its content,
    so entries never change. A level that makes a new map for every episode would let the folder
    grow for ever: when it is full, the least recently used go.

    Args:
      folder: `write` makes it where it is missing.
      max_bytes: of all maps together.
    """

    def __init__(self, folder: Path, max_bytes: int = _MAX_BYTES) -> None:
        self._folder = folder
        self._max_bytes = max_bytes

    def fetch(self, key: str, pk3_path: str) -> bool:
        """Copies a map to where the engine wants it; returns whether there was one to be had."""
        try:
            shutil.copyfile(self._folder / key, pk3_path)
        except OSError:  # not there, or another user's: that costs time, not the environment
            return False
        with contextlib.suppress(OSError):  # removed this moment, or of another user
            os.utime(self._folder / key)  # a file's own record of reads is coarse
        return True

    def write(self, key: str, pk3_path: str) -> None:
        """Keeps a copy of the map that the engine has compiled."""
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            # Renamed when whole: other processes must never fetch half a map.
            descriptor, path = tempfile.mkstemp(dir=self._folder)
            os.close(descriptor)
            try:
                shutil.copyfile(pk3_path, path)
                os.replace(path, self._folder / key)
            except OSError:
                Path(path).unlink(missing_ok=True)
                raise
            self._make_room()
        except OSError as error:  # a full disk costs time, not the environment
            print(f"The map {key} could not be cached: {error}", file=sys.stderr)

    def _make_room(self) -> None:
        """Removes the least recently used maps; other processes may do so too."""
        found = []
        for file in self._folder.iterdir():
            with contextlib.suppress(FileNotFoundError):
                status = file.stat()
                found.append((status.st_mtime, status.st_size, file))
        excess = sum(size for _, size, _ in found) - self._max_bytes
        for _, size, file in sorted(found):
            if excess <= 0:
                return
            file.unlink(missing_ok=True)
            excess -= size


def main() -> None:
    """Serves one player; when that one is gone and cannot, removes the engine's files."""
    with Connection(int(sys.argv[1])) as connection:
        arguments = connection.recv()
        try:
            serve(connection, **arguments)
        except (EOFError, ConnectionError):
            shutil.rmtree(arguments["temp_folder"], ignore_errors=True)


if __name__ == "__main__":
    main()
