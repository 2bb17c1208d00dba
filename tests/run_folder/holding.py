"""A process that runs a run folder, as far as its lock tells."""

import os
import pathlib
import signal
import time

from run_folder import run_lock
from tests.forks import fork


class Holder:
    """A process that takes the lock of a folder. A context manager: its end kills it.

    Args:
      folder: whose lock it takes.
      forks: whether it forks a process then, that outlives it by seconds.
    """

    def __init__(self, folder: pathlib.Path, *, forks: bool = False) -> None:
        read, write = os.pipe()

        def hold() -> None:
            run_lock.take(folder)
            if forks and not os.fork():
                time.sleep(10)
                return
            os.write(write, b"held")
            signal.pause()

        self.pid = fork(hold)
        os.close(write)
        with os.fdopen(read, "rb") as said:
            assert said.read(4) == b"held"

    def __enter__(self) -> "Holder":
        return self

    def __exit__(self, *_: object) -> None:
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
