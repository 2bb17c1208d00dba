"""Runs of `launch.train`, each a process in a session of its own, with nodes below it."""

import contextlib
import functools
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from typing import Any

import psutil

from tests.patience import PATIENCE, wait_for


@functools.cache
def _starter() -> "subprocess.Popen[str]":
    """What runs are forked from. It ends with this process, whose pipe it reads."""
    return subprocess.Popen(
        [sys.executable, "-m", "tests.launch.starter"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


class Watched:
    """A run, as its folder tells of it."""

    path: pathlib.Path

    def progress(self) -> dict[str, Any]:
        """What the coordinator last wrote; nothing before it did."""
        return _read(self.path / "nodes" / "progress.json")

    def manifest(self, name: str = "manifest.json") -> dict[str, Any]:
        """The newest complete checkpoint; nothing before the first."""
        return _read(self.path / "checkpoints" / name)

    def count(self, name: str) -> int:
        """One of the coordinator's counts."""
        counts: dict[str, int] = self.progress().get("counts", {})
        return counts.get(name, 0)


def _read(file: pathlib.Path) -> dict[str, Any]:
    contents: dict[str, Any] = json.loads(file.read_text()) if file.exists() else {}
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
        self._printed = tempfile.TemporaryDirectory()
        self._files = {
            name: pathlib.Path(self._printed.name, name) for name in ("out", "err", "code")
        }
        arguments = [f"--run_dir={run_dir}", *flags]
        request: dict[str, Any] = dict(
            module=module,
            arguments=arguments,
            folder=os.getcwd(),
            environment=dict(os.environ),
            **{name: str(file) for name, file in self._files.items()},
        )
        starter = _starter()
        assert starter.stdin is not None
        assert starter.stdout is not None
        starter.stdin.write(json.dumps(request) + "\n")
        starter.stdin.flush()
        self.pid = int(starter.stdout.readline())

    def __enter__(self) -> "Run":
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        self._wait()
        self._printed.cleanup()

    def nodes(self) -> list[psutil.Process]:
        """Every process below the launcher."""
        return psutil.Process(self.pid).children(recursive=True)

    def node(self, label: str) -> psutil.Process:
        """The process of a node, for example `actor/0`: the one that prints into that file."""
        file = str(self.path / "nodes" / label)
        (node,) = [n for n in self.nodes() if any(f.path == file for f in n.open_files())]
        return node

    def wait_until(self, holds: Callable[[], bool]) -> None:
        """Waits while the run lasts."""

        def find() -> bool:
            if holds():
                return True
            assert not self._files["code"].exists(), f"The run ended: {self.finish()}"
            return False

        wait_for(find, self.progress)

    def wait_until_learning(self) -> None:
        """Waits until something has been learned."""
        self.wait_until(lambda: self.count("learner_steps") > 0)

    def finish(self) -> tuple[int, str, str]:
        """The exit code, standard output and standard error, once the run has ended."""
        self._wait()
        code, out, err = (self._files[name].read_text() for name in ("code", "out", "err"))
        return int(code), out, err

    def _wait(self) -> None:
        wait_for(self._files["code"].exists, self.progress)


def all_gone(processes: list[psutil.Process]) -> bool:
    """Whether all of them end; those that do not are killed."""
    _, alive = psutil.wait_procs(processes, timeout=PATIENCE)
    for process in alive:
        process.kill()
    return not alive
