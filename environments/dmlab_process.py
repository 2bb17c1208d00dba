"""One DeepMind Lab engine in a process of its own: `python -m environments.dmlab_process <fd>`.

The engine ends its process at an error of its own, and keeps the interpreter's lock while it
steps. So whoever plays is in another process, and asks over a pipe whose descriptor is the
argument:

    asked                      answered
    keyword arguments          nothing; they are those of `serve`
    ("reset", seed)            (image, instruction)
    ("step", native action)    (reward, (image, instruction)), or (reward, None) at an episode's end

An engine that raises ends the process too. So does the end of the pipe: none outlives its player.
"""

import contextlib
import os
import shutil
import sys
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np

from environments import level_cache

FRAMES_PER_STEP = 4


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
        level_cache=level_cache.LevelCache(Path(cache)),
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
