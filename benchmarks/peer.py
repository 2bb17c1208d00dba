"""A peer: another library's code for the same work, in an interpreter that has it installed."""

import json
import pathlib
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

from absl import flags

PYTHON = flags.DEFINE_string(
    "peer_python", sys.executable, "The interpreter that has the peer's libraries."
)
_ROOT = pathlib.Path(__file__).resolve().parents[1]


class Peer:
    """A process that runs a module of `benchmarks.peers`. A context manager: its end ends it.

    Args:
      module: name of the module in `benchmarks.peers`.
      settings: what it is told; of JSON's types.

    Attributes:
      versions: of the peer's libraries.
      first_step_seconds: what its first step took.

    Raises:
      RuntimeError: when the process ends before it is ready; it said why on stderr.
    """

    def __init__(self, module: str, settings: Mapping[str, Any]) -> None:
        self._name = f"benchmarks.peers.{module}"
        self._process = subprocess.Popen(
            [PYTHON.value, "-m", self._name, json.dumps(settings)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=_ROOT,
        )
        ready = self._read()
        self.versions: dict[str, str] = ready["versions"]
        self.first_step_seconds: float = ready["first_step_seconds"]

    def __enter__(self) -> "Peer":
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()

    def run(self, steps: int) -> float:
        """Lets it make so many steps; returns the seconds they took.

        Raises:
          RuntimeError: when the process has ended.
        """
        assert self._process.stdin is not None
        self._process.stdin.write(f"{steps}\n")
        self._process.stdin.flush()
        return float(self._read()["seconds"])

    def _read(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            code = self._process.wait()
            raise RuntimeError(
                f"The peer {self._name} ended with code {code}; --peer_python={PYTHON.value} must "
                "have its libraries installed."
            )
        reply: dict[str, Any] = json.loads(line)
        return reply
