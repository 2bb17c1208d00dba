"""Runs of `launch.train` as a user starts them: a process of their own, with nodes below it."""

import contextlib
import json
import os
import pathlib
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import psutil

GONE_SECONDS = 15  # within which every process of an ended run is gone
PATIENCE = 300  # for what takes as long as the machine is busy


class Run:
    """One `python -m launch.train` in a session of its own. A context manager: its end kills.

    Args:
      run_dir: the run folder.
      flags: all others.
    """

    def __init__(self, run_dir: pathlib.Path, *flags: str) -> None:
        self.path = run_dir
        self._process = subprocess.Popen(
            [sys.executable, "-m", "launch.train", f"--run_dir={run_dir}", *flags],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self.pid = self._process.pid

    def __enter__(self) -> "Run":
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        self._process.communicate()

    def nodes(self) -> list[psutil.Process]:
        """Every process below the launcher."""
        return psutil.Process(self.pid).children(recursive=True)

    def node(self, label: str) -> psutil.Process:
        """The process of a node, for example `actor/0`: the one that prints into that file."""
        file = str(self.path / "nodes" / label)
        (node,) = [n for n in self.nodes() if any(f.path == file for f in n.open_files())]
        return node

    def progress(self) -> dict[str, Any]:
        """What the coordinator last wrote; nothing before it did."""
        return _read(self.path / "nodes" / "progress.json")

    def manifest(self, name: str = "manifest.json") -> dict[str, Any]:
        """The newest complete checkpoint; nothing before the first."""
        return _read(self.path / "checkpoints" / name)

    def wait_until(self, holds: Callable[[], bool]) -> None:
        """Waits while the run lasts."""
        deadline = time.monotonic() + PATIENCE
        while not holds():
            if self._process.poll() is not None:
                raise AssertionError(f"The run ended: {self.finish(PATIENCE)}")
            if time.monotonic() > deadline:
                raise AssertionError(f"Waited in vain; progress is {self.progress()}.")
            time.sleep(0.1)

    def wait_until_learning(self) -> None:
        """Waits until something has been learned."""
        self.wait_until(lambda: self.count("learner_steps") > 0)

    def count(self, name: str) -> int:
        """One of the coordinator's counts."""
        counts: dict[str, int] = self.progress().get("counts", {})
        return counts.get(name, 0)

    def finish(self, seconds: float = GONE_SECONDS) -> tuple[int, str, str]:
        """The exit code, standard output and standard error, within so many seconds."""
        out, err = self._process.communicate(timeout=seconds)
        return self._process.returncode, out, err


def _read(file: pathlib.Path) -> dict[str, Any]:
    contents: dict[str, Any] = json.loads(file.read_text()) if file.exists() else {}
    return contents


def all_gone(processes: list[psutil.Process], seconds: float = GONE_SECONDS) -> bool:
    """Whether all of them end in time; those that do not are killed."""
    _, alive = psutil.wait_procs(processes, timeout=seconds)
    for process in alive:
        process.kill()
    return not alive
