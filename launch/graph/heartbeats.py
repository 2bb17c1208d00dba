"""Whether nodes of one machine go on, as the process that forked them sees it.

Each writes the time into a place of its own in memory that both share, wherever it cannot stay for
long. A process that was stopped, or whose main loop waits for ever, is silent then. What takes long
and is nothing to worry about, a save, a compilation, a level that loads, runs `while_busy`: there a
thread writes the time, so only a process that stands still as a whole is silent.
"""

import contextlib
import mmap
import threading
import time
from collections.abc import Iterator, Sequence

import numpy as np

from environments.dmlab import engine

BUSY_SECONDS = 1.0  # between two beats of a busy node

_own: np.ndarray | None = None  # [1], in a node that somebody watches


class Heartbeats:
    """When each of some nodes was last heard of.

    Args:
      labels: of the nodes.
    """

    def __init__(self, labels: Sequence[str]) -> None:
        self._places = {label: place for place, label in enumerate(labels)}
        self._times = np.frombuffer(mmap.mmap(-1, 8 * max(len(labels), 1)))  # shared by forks

    def begin(self, label: str) -> None:
        """A node starts now."""
        self._times[self._places[label]] = time.monotonic()

    def use(self, label: str) -> None:
        """Makes this process that node."""
        global _own
        place = self._places[label]
        _own = self._times[place : place + 1]
        engine.on_wait = beat

    def silence(self, label: str) -> float:
        """Seconds since a node was last heard of."""
        return time.monotonic() - float(self._times[self._places[label]])


def beat() -> None:
    """Says that this node goes on."""
    if _own is not None:
        _own[0] = time.monotonic()


@contextlib.contextmanager
def while_busy() -> Iterator[None]:
    """Says so for as long as a block, or a function, lasts, whatever it waits for."""
    over = stay_busy()
    try:
        yield
    finally:
        over.set()
        beat()


def stay_busy() -> threading.Event:
    """Says so from now on, until what it returns is set."""
    over = threading.Event()

    def go_on() -> None:
        beat()
        while not over.wait(BUSY_SECONDS):
            beat()

    if _own is not None:
        threading.Thread(target=go_on, daemon=True).start()
    return over
