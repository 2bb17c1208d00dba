"""Runs of `launch.train`, each a process in a session of its own, with nodes below it."""

import contextlib
import functools
import json
import os
import pathlib
import tempfile
from collections.abc import Callable
from typing import Any

import psutil

from tests.commands import Commands
from tests.patience import PATIENCE, wait_for
from tests.rows import rows


@functools.cache
def forked() -> Commands:
    """Starts commands that import all that a run imports; ends with this process."""
    return Commands(load=("launch.starting", "launch.local.supervisor", "launch.members.loop"))


class Watched:
    """A run, as its folder tells of it."""

    path: pathlib.Path

    def progress(self) -> dict[str, Any]:
        """The coordinator's newest progress; empty before the first."""
        return _read(self.path / "nodes" / "progress.json")

    def manifest(self, name: str = "manifest.json") -> dict[str, Any]:
        """The newest complete checkpoint; empty before the first."""
        return _read(self.path / "checkpoints" / name)

    def count(self, name: str) -> int:
        """One of the coordinator's counts."""
        counts: dict[str, int] = self.progress().get("counts", {})
        return counts.get(name, 0)

    def rows(self, log: str) -> list[dict[str, str]]:
        """The rows of a log; none before it was begun."""
        return rows(self.path / "logs" / f"{log}.csv")


def _read(file: pathlib.Path) -> dict[str, Any]:
    try:
        contents: dict[str, Any] = json.loads(file.read_text())
    except FileNotFoundError:  # a launch that begins removes what the last one left
        return {}
    return contents


class Run(Watched):
    """One `python -m launch.train` in a session of its own. A context manager: its end kills.

    Args:
      run_dir: the run folder.
      flags: all others.
      module: another command.
    """

    def __init__(self, run_dir: pathlib.Path, *flags: str, module: str = "launch.train") -> None:
        self.path = run_dir
        self._output = tempfile.TemporaryDirectory()
        output, folder = pathlib.Path(self._output.name), pathlib.Path.cwd()
        self._started = forked().start(
            output, module, f"--run_dir={run_dir}", *flags, folder=folder
        )
        self.pid = self._started.pid

    def __enter__(self) -> "Run":
        return self

    def __exit__(self, *_: object) -> None:
        self._started.kill()
        self._wait()
        self._output.cleanup()

    def nodes(self) -> list[psutil.Process]:
        """Every process below the launcher; none once that has ended."""
        with contextlib.suppress(psutil.NoSuchProcess):
            return psutil.Process(self.pid).children(recursive=True)
        return []

    def node(self, label: str) -> psutil.Process:
        """The process of a node, for example `actor/0`: the one that prints into that file."""
        file = str(self.path / "nodes" / label)
        (node,) = [node for node in self.nodes() if _has_opened(node, file)]
        return node

    def wait_until(self, holds: Callable[[], bool]) -> None:
        """Waits while the run lasts."""

        def find() -> bool:
            if holds():
                return True
            assert not self._started.has_ended(), f"The run ended: {self.finish()}"
            return False

        wait_for(find, self.progress)

    def wait_until_learning(self) -> None:
        """Waits until something has been learned."""
        self.wait_until(lambda: self.count("learner_steps") > 0)

    def end(self, number: int = 0, *, group: bool = False) -> tuple[int, str, str]:
        """Sends the launcher, or its group, a signal; as `finish`, and fails where a node stays."""
        nodes = self.nodes()
        with contextlib.suppress(ProcessLookupError):  # it has ended by itself
            (os.killpg if group else os.kill)(self.pid, number)
        ended = self.finish()
        assert all_gone(nodes)
        return ended

    def finish(self) -> tuple[int, str, str]:
        """The exit code, standard output and standard error, once the run has ended."""
        self._wait()
        return self._started.outcome()[:3]

    def _wait(self) -> None:
        """Waits for the end, for as long as the run gets on."""
        while not self._started.has_ended():
            wait_for(functools.partial(self._gets_on, self._made()), self.progress)

    def _gets_on(self, made: list[Any]) -> bool:
        return self._started.has_ended() or self._made() != made

    def _made(self) -> list[Any]:
        known = self.progress()
        counts = known.get("counts", {})
        return [known.get("state"), counts.get("actor_steps"), known.get("learners")]


def _has_opened(process: psutil.Process, file: str) -> bool:
    try:
        return any(opened.path == file for opened in process.open_files())
    except psutil.NoSuchProcess:  # it has ended meanwhile
        return False


def all_gone(processes: list[psutil.Process]) -> bool:
    """Whether all of them end; those that do not are killed."""
    _, alive = psutil.wait_procs(processes, timeout=PATIENCE)
    for process in alive:
        process.kill()
    return not alive
