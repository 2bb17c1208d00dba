"""A real run, started as a user starts it, and watched through the files that it writes."""

import os
import pathlib
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import psutil

from run_folder import progress

_POLL_SECONDS = 0.2
_END_SECONDS = 30


class Moment(NamedTuple):
    """How far a run was at one time."""

    counts: dict[str, float]  # steps of actors and learner, walltime
    cpu_seconds: dict[str, float]  # by node


class Run:
    """`python -m launch.train` in a session of its own. A context manager: its end ends it.

    Args:
      folder: the run folder.
      arguments: all other flags.
    """

    def __init__(self, folder: pathlib.Path, arguments: Sequence[str]) -> None:
        self._folder = folder
        self._started = time.perf_counter()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "launch.train", f"--run_dir={folder}", *arguments],
            stdout=sys.stderr,
            start_new_session=True,
        )

    def __enter__(self) -> "Run":
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(self._process.pid, signal.SIGKILL)

    def wait_for(self, name: str, count: float) -> float:
        """Waits until so much is counted; returns the seconds since the command was given.

        The run writes its counts once a second, and its actors report once a second.

        Raises:
          RuntimeError: when the run ends before.
        """
        self._wait_until(lambda counts: counts.get(name, 0) >= count)
        return time.perf_counter() - self._started

    def moment(self) -> Moment:
        """How far it is now."""
        return Moment(self._counts(), self._cpu_seconds())

    def _wait_until(self, holds: Callable[[dict[str, float]], bool]) -> None:
        while not holds(self._counts()):
            if self._process.poll() is not None:
                raise RuntimeError(f"The run ended with code {self._process.returncode}.")
            time.sleep(_POLL_SECONDS)

    def _counts(self) -> dict[str, float]:
        state: dict[str, Any] = progress.read(self._folder) or {}
        counts: dict[str, float] = state.get("counts", {})
        return counts

    def _cpu_seconds(self) -> dict[str, float]:
        launcher = psutil.Process(self._process.pid)
        found = {"launcher": _cpu_seconds(launcher)}
        for child in launcher.children(recursive=True):
            name = self._node(child)
            if name:
                found[name] = _cpu_seconds(child)
        return found

    def _node(self, process: psutil.Process) -> str:
        """A node's name is that of the file it prints into."""
        nodes = (self._folder / "nodes").resolve()
        paths = (pathlib.Path(file.path) for file in process.open_files())
        names = [str(path.relative_to(nodes)) for path in paths if nodes in path.parents]
        return names[0] if names else ""


def _cpu_seconds(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)
