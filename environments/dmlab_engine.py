"""The player's end of `dmlab_process`: starts an engine, asks it, and notices its death."""

import contextlib
import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from environments import dmlab_process, waiting

_LAST_WORDS = 1000  # characters


class EngineLost(Exception):
    """The engine's process has ended or says nothing any more; the message is a clause."""


class Engine:
    """One engine in a process of its own, which ends when this object's process does."""

    def __init__(self, level: str, config: dict[str, str], cache: Path) -> None:
        """Starts the process, without waiting for it.

        Args:
          level: the engine's name of it, a path.
          config: the engine's settings.
          cache: the folder of compiled maps.
        """
        self._folder = Path(tempfile.mkdtemp(prefix="dmlab-"))
        self._output = self._folder / "output.txt"
        self._connection, theirs = multiprocessing.Pipe()
        with theirs, self._output.open("wb") as output:
            # Not multiprocessing, which would import the player's main module, TensorFlow and all.
            self._process = subprocess.Popen(
                [sys.executable, "-m", dmlab_process.__name__, str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                pass_fds=[theirs.fileno()],
                env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
                # A group of its own: a map's compiler is killed with the engine, and a signal to
                # the player's group leaves the engine to end, and to tidy up, after its player.
                start_new_session=True,
            )
        self._send(
            dict(level=level, config=config, temp_folder=str(self._folder), cache=str(cache))
        )

    @property
    def pid(self) -> int:
        """The process's number."""
        return self._process.pid

    def reset(self, seed: int) -> None:
        """Begins an episode; the answer is its first (image, instruction)."""
        self._send(("reset", seed))

    def step(self, action: tuple[int, ...]) -> None:
        """Acts; the answer is the reward and the next (image, instruction), None at the end."""
        self._send(("step", action))

    def _send(self, message: Any) -> None:
        with contextlib.suppress(OSError):  # a dead engine shows when its answer is waited for
            self._connection.send(message)

    def answer(self, patience: float) -> Any:
        """Waits for the answer to what was asked last.

        Args:
          patience: seconds.

        Raises:
          EngineLost: the process has ended, or was silent for longer.
        """
        try:
            if waiting.poll(self._connection, patience):
                return self._connection.recv()
        except (EOFError, OSError):
            raise EngineLost(self._how_it_ended()) from None
        raise EngineLost(f"was silent for {patience:g} s")

    def _how_it_ended(self) -> str:
        try:
            code = self._process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            return "closed its pipe"
        how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"exited with {code}"
        words = _last_words(self._output.read_text(errors="replace").strip())
        return f"{how}; its last words: {words}" if words else how

    def close(self) -> None:
        """Ends the process and removes its files."""
        self._connection.close()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        shutil.rmtree(self._folder, ignore_errors=True)


def _last_words(text: str) -> str:
    """The end of a long text: from the start of a line, of a word where that line is too long."""
    if len(text) <= _LAST_WORDS:
        return text
    end = text[-_LAST_WORDS - 1 :]
    for separator in "\n ":
        before = end.find(separator, 0, _LAST_WORDS // 2)
        if before >= 0:
            return f"... {end[before:].lstrip()}"
    return f"...{end[1:]}"
