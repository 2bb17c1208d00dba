"""Runs of `launch.train` as a user starts them: a process of their own, with nodes below it."""

import json
import pathlib
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import psutil

GONE_SECONDS = 15  # within which every process of an ended run is gone
PATIENCE_SECONDS = 150  # for what takes as long as the machine is busy


class Run:
    """One `python -m launch.train` in a session of its own.

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

    def nodes(self) -> list[psutil.Process]:
        """Every process below the launcher."""
        return psutil.Process(self.pid).children(recursive=True)

    def node(self, label: str) -> psutil.Process:
        """The process of a node, recognised by the file that it prints into."""
        file = str(self.path / "nodes" / label)
        (node,) = [n for n in self.nodes() if any(f.path == file for f in n.open_files())]
        return node

    def progress(self) -> dict[str, Any] | None:
        """What the coordinator last wrote."""
        file = self.path / "nodes" / "progress.json"
        return json.loads(file.read_text()) if file.exists() else None

    def manifest(self) -> dict[str, Any] | None:
        """The newest complete checkpoint."""
        file = self.path / "checkpoints" / "manifest.json"
        return json.loads(file.read_text()) if file.exists() else None

    def wait_until(self, holds: Callable[[], bool]) -> None:
        """Waits while the run lasts."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not holds():
            if self._process.poll() is not None:
                raise AssertionError(f"The run ended: {self.finish(PATIENCE_SECONDS)}")
            if time.monotonic() > deadline:
                raise AssertionError(f"Waited in vain; progress is {self.progress()}.")
            time.sleep(0.1)

    def wait_until_learning(self) -> None:
        """Waits until something has been learned."""
        self.wait_until(lambda: bool((p := self.progress()) and p["counts"]["learner_steps"] > 0))

    def finish(self, seconds: float = GONE_SECONDS) -> tuple[int, str, str]:
        """The exit code, standard output and standard error, within so many seconds."""
        out, err = self._process.communicate(timeout=seconds)
        return self._process.returncode, out, err


def all_gone(processes: list[psutil.Process], seconds: float = GONE_SECONDS) -> bool:
    """Whether all of them end in time; those that do not are killed."""
    _, alive = psutil.wait_procs(processes, timeout=seconds)
    for process in alive:
        process.kill()
    return not alive
