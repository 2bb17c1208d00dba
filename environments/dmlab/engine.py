"""The player's end of `environments.dmlab.process`: engines, and the episodes of one copy."""

import contextlib
import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from environments.copies import dead_simulators
from environments.copies.dead_simulators import Deaths
from environments.dmlab import process

_LAST_WORDS = 1000  # characters
_SECONDS = 1.0  # between two calls of `dead_simulators.on_wait`

Frame = tuple[np.ndarray, str]
"""(image uint8 [72, 96, 3], instruction), as the player sees and hears them."""


class EngineLost(Exception):
    """The engine's process has ended or is silent; the message is a clause."""


class Engine:
    """One engine in a process of its own, which ends when this object's process does.

    `reset` and `step` only ask; `answer` waits.

    Args:
      level: the engine's name of it, a path.
      config: the engine's settings.
      cache: the folder of compiled maps.
    """

    def __init__(self, level: str, config: dict[str, str], cache: Path) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="dmlab-"))
        self._output = self._folder / "output.txt"
        self._connection, theirs = multiprocessing.Pipe()
        with theirs, self._output.open("wb") as output:
            # Not multiprocessing, which would import the player's main module, TensorFlow and all.
            self._process = subprocess.Popen(
                [sys.executable, "-m", process.__name__, str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                pass_fds=[theirs.fileno()],
                env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
                # A group of its own: a map's compiler is killed with the engine, and a signal to
                # the player's group leaves the engine to end, and to tidy up, after its player.
                start_new_session=True,
            )
        self.pid = self._process.pid
        self._send(
            dict(level=level, config=config, temp_folder=str(self._folder), cache=str(cache))
        )

    def reset(self, seed: int) -> None:
        """Begins an episode; the answer is its first `Frame`."""
        self._send(("reset", seed))

    def step(self, action: tuple[int, ...]) -> None:
        """Acts; the answer is the reward and the next `Frame`, None at the end."""
        self._send(("step", action))

    def _send(self, message: Any) -> None:
        with contextlib.suppress(OSError):  # a dead engine shows when its answer is waited for
            self._connection.send(message)

    def answer(self, patience: float) -> Any:
        """Waits for the answer to the last request.

        Args:
          patience: seconds.

        Raises:
          EngineLost: the process has ended, or was silent for longer.
        """
        left = patience
        try:
            while left > _SECONDS and not self._connection.poll(_SECONDS):
                dead_simulators.on_wait()
                left -= _SECONDS
            if self._connection.poll(left):
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
        words = self._output.read_text(errors="replace").strip()
        if len(words) > _LAST_WORDS:
            words = f"...{words[-_LAST_WORDS:]}"
        return f"{how}; its last words: {words}" if words else how

    def close(self) -> None:
        """Ends the process and removes its files."""
        self._connection.close()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        self._process.wait()
        shutil.rmtree(self._folder, ignore_errors=True)


class Episodes:
    """One copy of a level, whose episodes go on when an engine that plays them ends.

    `begin` and `step` only ask, so that several copies can be asked before the first answer is
    waited for; `first_frame` and `outcome` wait.

    Args:
      start: starts an engine.
      deaths: counts the level's engines that end by themselves.
      patience: seconds after which a silent engine is given up.
      seed: from it comes every episode's own.

    Attributes:
      frame: the newest one.
      lost: how many engines have ended by themselves.
    """

    frame: Frame

    def __init__(
        self, start: Callable[[], Engine], deaths: Deaths, *, patience: float, seed: int
    ) -> None:
        self._start = start
        self._deaths = deaths
        self._patience = patience
        self._seeds = np.random.default_rng(seed)
        self._engine: Engine | None = None
        self.lost = 0

    def begin(self) -> None:
        """Asks for a new episode, of a new engine where there is none."""
        self._running().reset(int(self._seeds.integers(2**31)))

    def first_frame(self) -> None:
        """Waits until the episode has begun; engines that fail at it are replaced.

        Raises:
          CannotPlayError: as `Deaths.add`.
        """
        while True:
            try:
                self.frame = self._running().answer(self._patience)
                return
            except EngineLost as loss:
                self._lose(loss)
                self.begin()

    def step(self, action: tuple[int, ...]) -> None:
        """Asks for a step with a native action."""
        self._running().step(action)

    def outcome(self) -> tuple[float, bool, bool]:
        """Waits for a step and returns (reward, terminated, truncated).

        Either way of ending leaves the frame as it is: an engine shows nothing after an episode's
        last step, let alone after its own.

        Raises:
          CannotPlayError: as `first_frame`.
        """
        try:
            reward, frame = self._running().answer(self._patience)
        except EngineLost as loss:
            self._lose(loss)
            return 0.0, False, True
        self._deaths.step(self, ended=frame is None)
        self.frame = frame or self.frame
        return reward, frame is None, False

    def close(self) -> None:
        """Ends the engine."""
        if self._engine is not None:
            self._engine.close()
        self._engine = None

    def _running(self) -> Engine:
        if self._engine is None:
            self._engine = self._start()
        return self._engine

    def _lose(self, loss: EngineLost) -> None:
        pid = self._running().pid
        self.close()
        self.lost += 1
        self._deaths.add(self, f"in process {pid} {loss}", loss)
