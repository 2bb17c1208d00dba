"""A rival: another library's code for the same work, in an interpreter that has it installed."""

import contextlib
import json
import pathlib
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from absl import flags

PYTHON = flags.DEFINE_string(
    "peer_python", sys.executable, "The interpreter that has the rival's libraries."
)
_ROOT = pathlib.Path(__file__).resolve().parents[1]


class Rival(contextlib.AbstractContextManager["Rival"]):
    """A process that runs a module of `benchmarks.rivals`. A context manager: its end ends it.

    Args:
      module: its name, and after a colon that of what it measures.
      settings: of JSON's types.

    Raises:
      RuntimeError: the process ended before it was ready; it said why on stderr.
    """

    def __init__(self, module: str, settings: Mapping[str, Any]) -> None:
        self._name = f"benchmarks.rivals.{module}"
        name, *which = self._name.split(":")
        self._process = subprocess.Popen(
            [PYTHON.value, "-m", name, json.dumps(settings), *which],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=_ROOT,
        )
        ready = self._read()
        self.versions: dict[str, str] = ready["versions"]
        self.first_step_seconds: float = ready["first_step_seconds"]

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()

    def run(self, steps: int) -> float:
        """Lets it make so many steps; returns the seconds they took."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{steps}\n")
        self._process.stdin.flush()
        return float(self._read()["seconds"])

    def _read(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        if line := self._process.stdout.readline():
            reply: dict[str, Any] = json.loads(line)
            return reply
        raise RuntimeError(
            f"The rival {self._name} ended with code {self._process.wait()}; --peer_python="
            f"{PYTHON.value} must have its libraries installed."
        )


def result(module: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """The last line of a rival that measures itself."""
    return last_line([PYTHON.value, "-m", f"benchmarks.rivals.{module}", json.dumps(settings)])


def last_line(command: Sequence[str]) -> dict[str, Any]:
    """The last line of a command's output, which is JSON."""
    output = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, cwd=_ROOT)
    found: dict[str, Any] = json.loads(output.stdout.splitlines()[-1])
    return found
