"""Commands of the tree as a user gives them, but for the seconds that TensorFlow's import takes."""

import json
import pathlib
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import NamedTuple

_ROOT = pathlib.Path(__file__).resolve().parents[1]
SECONDS = 600  # that a command may take, on a busy machine


class Request(NamedTuple):
    """A command that is to be run."""

    module: str
    arguments: Sequence[str]
    stop: bool  # where the command has accepted all it was told, and would begin its work
    path: Sequence[str]  # where modules are looked for first


class Outcome(NamedTuple):
    """The end of a command."""

    code: int  # of its exit; minus the signal that killed it
    out: str
    err: str
    began: bool  # whether it was stopped because it would begin
    flags: Sequence[str]  # that it and what it imports of the tree define


class Commands:
    """Runs commands one after the other. A context manager: its end ends the process.

    Args:
      within: a command whose last arguments are the one that it runs.
      environment: variables of all that is run; this process's own by default.
      load: modules that commands will import, to be imported but once.
    """

    def __init__(
        self,
        within: Sequence[str] = (),
        environment: Mapping[str, str] | None = None,
        load: Sequence[str] = (),
    ) -> None:
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

    def run(
        self, module: str, *arguments: str, stop: bool = False, path: Sequence[str] = ()
    ) -> Outcome:
        """Runs `python -m <module> <arguments>` to its end, or until it would begin its work."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        request = Request(module, arguments, stop, path)
        print(json.dumps(request._asdict()), file=self._process.stdin, flush=True)
        return Outcome(*json.loads(self._process.stdout.readline()))
