"""A real run, started as a user starts it, and watched through the files that it writes."""

import contextlib
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
from run_folder.layout import RunFolder

_POLL_SECONDS = 0.2
_END_SECONDS = 60


def cpu_seconds(process: psutil.Process) -> float:
    """Seconds of a core that a process has used."""
    times = process.cpu_times()
    return float(times.user + times.system)


def nodes(launcher: int, run_dir: pathlib.Path) -> dict[str, psutil.Process]:
    """The nodes that run, by label: those processes that print into files of the run folder."""
    folder, found = str(RunFolder(run_dir.resolve()).nodes), dict[str, psutil.Process]()
    for process in psutil.Process(launcher).children(recursive=True):
        try:
            path = os.readlink(f"/proc/{process.pid}/fd/1")
            is_node = path.startswith(folder) and process.ppid() != launcher
        except (OSError, psutil.NoSuchProcess):  # it has just ended
            continue
        if is_node:
            found.setdefault(path[len(folder) + 1 :], process)
    return found


class Moment(NamedTuple):
    """The progress of a run at one time."""

    counts: dict[str, float]  # steps of actors and learner, walltime
    cpu_seconds: dict[str, float]  # by node


class Run(contextlib.AbstractContextManager["Run"]):
    """`python -m launch.train` in a session of its own. A context manager: its end ends it.

    Where another work tree is given, the command is that tree's.
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
          RuntimeError: the run ended before.
        """
        return self._wait_until(lambda: self._state().get("counts", {}).get(name, 0) >= count)

    def wait_until_all_act(self) -> float:
        """Waits until every actor has acted; as `wait_for`."""

        def act() -> bool:
            acting, actors = self._state().get("acting", (0, 1))
            return bool(acting == actors)

        return self._wait_until(act)

    def _wait_until(self, holds: Callable[[], bool]) -> float:
        while not holds():
            if self._process.poll() is not None:
                raise RuntimeError(f"The run ended with code {self._process.returncode}.")
            time.sleep(_POLL_SECONDS)
        return time.perf_counter() - self._started

    def moment(self) -> Moment:
        """Its progress now."""
        found = {"launcher": psutil.Process(self._process.pid), **self._nodes()}
        spent = {name: cpu_seconds(process) for name, process in found.items()}
        return Moment(self._state().get("counts", {}), spent)

    def memory(self) -> float:
        """Bytes of all its processes; a page that several share is divided among them."""
        return float(sum(process.memory_full_info().pss for process in self._processes()))

    def seconds_to_end(self, node: str | None = None) -> float:
        """Interrupts it, or kills a node; returns the seconds until no process of it is left.

        Raises:
          RuntimeError: something is left after a minute.
        """
        launcher, *children = self._processes()
        victims = [own for name, own in self._nodes().items() if node and name.startswith(node)]
        began = time.perf_counter()
        if victims:
            victims[0].kill()
        else:
            launcher.send_signal(signal.SIGINT)
        self._process.wait(_END_SECONDS)
        if left := psutil.wait_procs(children, _END_SECONDS)[1]:
            raise RuntimeError(f"The run has left {left}.")
        return time.perf_counter() - began

    def _processes(self) -> list[psutil.Process]:
        launcher = psutil.Process(self._process.pid)
        return [launcher, *launcher.children(recursive=True)]

    def _state(self) -> dict[str, Any]:
        return progress.read(self._folder) or {}

    def _nodes(self) -> dict[str, psutil.Process]:
        return nodes(self._process.pid, self._folder)
