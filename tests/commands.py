"""Commands of the tree as a user gives them, but for the seconds that TensorFlow's import takes."""

import contextlib
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from tests.patience import wait_for

_ROOT = pathlib.Path(__file__).resolve().parents[1]
_SECONDS = 600.0  # that a command may take, on a busy machine


class Request(NamedTuple):
    """A command that is to be run."""

    module: str
    arguments: Sequence[str]
    folder: str  # that it runs in
    environment: Mapping[str, str]
    output: str  # a folder for what it prints and how it ends
    stop: bool  # where the command has accepted all it was told, and would begin its work


class Outcome(NamedTuple):
    """The end of a command."""

    code: int  # of its exit; minus the signal that killed it
    out: str
    err: str
    began: bool  # whether it was stopped because it would begin
    flags: Sequence[str]  # that it and what it imports of the tree define


class Started(NamedTuple):
    """A command that runs, in a session of its own."""

    pid: int
    output: pathlib.Path

    def has_ended(self) -> bool:
        """Whether there is an outcome."""
        return (self.output / "code").exists()

    def outcome(self) -> Outcome:
        """The end of a command that has ended."""
        code, out, err, more = (_read(self.output / name) for name in ("code", "out", "err", "end"))
        return Outcome(int(code), out, err, *json.loads(more or "[false, []]"))

    def kill(self) -> None:
        """Ends the command and what it started, as far as that has no session of its own."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)


def _read(file: pathlib.Path) -> str:
    return file.read_text() if file.exists() else ""


class Commands:
    """Starts commands as forks of one process. A context manager: its end ends that process.

    Args:
      within: a command whose last arguments are the one that it runs.
      environment: variables of all that is run; by default those of this process at the time.
      load: modules that commands will import, to be imported but once.
    """

    def __init__(
        self,
        within: Sequence[str] = (),
        environment: Mapping[str, str] | None = None,
        load: Sequence[str] = (),
    ) -> None:
        self._environment = environment
        self._process = subprocess.Popen(
            [*within, sys.executable, "-m", "tests.forking", *load],
            cwd=_ROOT,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,  # TensorFlow's greetings
            text=True,
        )

    def __enter__(self) -> "Commands":
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()

    def start(
        self,
        output: pathlib.Path,
        module: str,
        *arguments: str,
        folder: pathlib.Path = _ROOT,
        stop: bool = False,
        **variables: str,
    ) -> Started:
        """Starts `python -m <module> <arguments>` in a folder, with further variables.

        Args:
          output: a folder for what it prints and how it ends.
          stop: end it where it would begin its work.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        environment = {**(self._environment or os.environ), **variables}
        request = Request(module, arguments, str(folder), environment, str(output), stop)
        print(json.dumps(request._asdict()), file=self._process.stdin, flush=True)
        return Started(int(self._process.stdout.readline()), output)

    def run(
        self, module: str, *arguments: str, stop: bool = False, path: Sequence[str] = ()
    ) -> Outcome:
        """Runs `python -m <module> <arguments>` to its end, or until it would begin its work.

        Modules are looked for in `path` first.
        """
        found = [*path, *filter(None, [os.environ.get("PYTHONPATH")])]
        variables: dict[str, Any] = {"PYTHONPATH": os.pathsep.join(found)} if found else {}
        with tempfile.TemporaryDirectory() as name:
            output = pathlib.Path(name)
            variables["TMPDIR"] = name  # what it leaves goes with it
            folder = output if stop else _ROOT
            started = self.start(output, module, *arguments, folder=folder, stop=stop, **variables)
            try:
                wait_for(started.has_ended, seconds=_SECONDS, pause=0.005)
            finally:
                started.kill()
            return started.outcome()
