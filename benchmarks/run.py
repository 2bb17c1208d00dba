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

from benchmarks.local_replay import cpu_seconds
from run_folder import progress

_POLL_SECONDS = 0.2
_END_SECONDS = 60


class Moment(NamedTuple):
    """How far a run was at one time."""

    counts: dict[str, float]  # steps of actors and learner, walltime
    cpu_seconds: dict[str, float]  # by node


class Run:
    """`python -m launch.train` in a session of its own. A context manager: its end ends it.

    It is that of another work tree where one is given.
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
        """How far it is now."""
        launcher, *children = self._processes()
        spent = {self._node(child): cpu_seconds(child) for child in children}
        spent.pop("", None)
        return Moment(self._state().get("counts", {}), {"launcher": cpu_seconds(launcher)} | spent)

    def memory(self) -> float:
        """Bytes of all its processes, of a page that several share each one's part."""
        return float(sum(process.memory_full_info().pss for process in self._processes()))

    def seconds_to_end(self, node: str | None = None) -> float:
        """Interrupts it, or kills a node; returns the seconds until no process of it is left.

        Raises:
          RuntimeError: something is left after a minute.
        """
        launcher, *children = self._processes()
        victims = [child for child in children if node and self._node(child).startswith(node)]
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

    def _node(self, process: psutil.Process) -> str:
        """A node's name, that of the file it prints into; of another process none."""
        nodes = (self._folder / "nodes").resolve()
        paths = (pathlib.Path(file.path) for file in process.open_files())
        names = [str(path.relative_to(nodes)) for path in paths if nodes in path.parents]
        return names[0] if names else ""
