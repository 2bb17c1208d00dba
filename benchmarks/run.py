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
_END_SECONDS = 60


class Moment(NamedTuple):
    """How far a run was at one time."""

    counts: dict[str, float]  # steps of actors and learner, walltime
    cpu_seconds: dict[str, float]  # by node


class Run:
    """`python -m launch.train` in a session of its own. A context manager: its end ends it.

    Args:
      folder: the run folder.
      arguments: all other flags.
      tree: the work tree whose `launch.train` it is; this one by default.
    """

    def __init__(
        self, folder: pathlib.Path, arguments: Sequence[str], tree: str | None = None
    ) -> None:
        self._folder = folder
        self._started = time.perf_counter()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "launch.train", f"--run_dir={folder}", *arguments],
            stdout=sys.stderr,
            start_new_session=True,
            cwd=tree,
            env=os.environ | ({"PYTHONPATH": tree} if tree else {}),
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

    def wait_until_all_act(self) -> float:
        """Waits until every actor has acted; returns the seconds since the command was given.

        Raises:
          RuntimeError: when the run ends before.
        """

        def act() -> bool:
            acting, actors = (progress.read(self._folder) or {}).get("acting", (0, 1))
            return bool(acting == actors)

        self._wait_until(lambda _: act())
        return time.perf_counter() - self._started

    def memory(self) -> float:
        """Bytes of all its processes, of a page that several share each one's part."""
        return float(sum(process.memory_full_info().pss for process in self._processes()))

    def seconds_to_end(self, node: str | None = None) -> float:
        """Interrupts it, or kills a node; returns the seconds until no process of it is left.

        Args:
          node: as its output's file is named, or the beginning of that.

        Raises:
          RuntimeError: when something is left after a minute.
        """
        processes = self._processes()
        killed = next(
            (found for found in processes[1:] if node and self._node(found).startswith(node)), None
        )
        began = time.perf_counter()
        if killed is None:
            processes[0].send_signal(signal.SIGINT)
        else:
            killed.kill()
        self._process.wait(_END_SECONDS)
        if left := psutil.wait_procs(processes[1:], _END_SECONDS)[1]:
            raise RuntimeError(f"The run has left {left}.")
        return time.perf_counter() - began

    def _processes(self) -> list[psutil.Process]:
        launcher = psutil.Process(self._process.pid)
        return [launcher, *launcher.children(recursive=True)]

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
        launcher, *children = self._processes()
        found = {"launcher": _cpu_seconds(launcher)}
        for child in children:
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
