"""A node's process: how it begins, hears that it is to end, and says that it goes on.

Whoever forked it sees whether it goes on. It writes the time into a place of its own in memory that
both share, wherever it cannot stay for long: one that was stopped, or whose main loop waits for
ever, is silent then. What takes long and is nothing to worry about, a save, a compilation, a level
that loads, runs `while_busy`: there a thread writes the time, so only a process that stands still
as a whole is silent.
"""

import contextlib
import mmap
import signal
import sys
import threading
import time
import traceback
from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import Any

import launchpad as lp
import numpy as np

from environments.copies import dead_simulators
from run_folder import mirrors
from run_folder.layout import RunFolder

TERMINATED = 128 + signal.SIGTERM  # exit code, as a shell has it: ended before the run has
DONE = 4  # of a node that returned: a 0 may be anybody's, who ended the process from within
CANNOT_PLAY = 3  # of a node that ended by a CannotPlayError
GRACE_SECONDS = 1.0  # in which a node that met an error hears whether another one crashed before
REPORT_SECONDS = 1.0  # between two reports of a node to the coordinator
BUSY_SECONDS = 1.0  # between two beats of a busy node

_own: np.ndarray | None = None  # [1], in a node that somebody watches


def stop_event() -> threading.Event:
    """Set when this node is asked to end. Launchpad tells it to a node's main thread alone."""
    event: threading.Event = lp.stop_event()
    return event


class Ending:
    """Says whether a node is to end: it was told so, or the coordinator says so.

    That is asked once in `REPORT_SECONDS` at most.
    """

    def __init__(self, coordinator: Any) -> None:
        self._coordinator = coordinator
        self._stop = stop_event()
        self._ask_at = 0.0

    def __call__(self) -> bool:
        beat()
        now = time.monotonic()
        if self._stop.is_set():
            return True
        if now < self._ask_at:
            return False
        self._ask_at = now + REPORT_SECONDS
        return bool(self._coordinator.should_stop())


def wait_for_stop(seconds: float | None = None) -> bool:
    """Waits until this node is asked to end, or for so long; says whether it was asked.

    `launchpad.wait_for_stop` of the build that is pinned says nothing. As there, only a node's main
    thread may call it.
    """
    return stop_event().wait(seconds)


def enter(run_dir: str, title: str, goes_on_with: Sequence[str] = ()) -> None:
    """Makes this process a node of a run. Called first, in its main thread.

    The traceback of an error that ends it is left in the run folder, where the launcher finds and
    shows it.

    Args:
      run_dir: the run folder.
      title: what the node is, for the one who reads the traceback.
      goes_on_with: files, as patterns, that earlier parts of the run left in its folder and that
        this node reads or adds to.
    """
    mirror = mirrors.of(run_dir)
    mirror.fetch(*goes_on_with)
    mirror.keep_pushed()
    crash_file = RunFolder(mirror.path).crash
    crash_file.parent.mkdir(parents=True, exist_ok=True)
    show = sys.excepthook

    def record(
        kind: type[BaseException], error: BaseException, trace: TracebackType | None
    ) -> None:
        # What breaks while a run is torn down did not end it; nor did what followed the first.
        if not wait_for_stop(GRACE_SECONDS):
            lines = "".join(traceback.format_exception(kind, error, trace))
            # A full disk is no reason to hide the error from the node's own output.
            with contextlib.suppress(OSError), crash_file.open("x") as file:
                file.write(f"The {title} node crashed:\n{lines}")
        show(kind, error, trace)

    sys.excepthook = record


class Heartbeats:
    """When each of some nodes, by label, was last heard of."""

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
        dead_simulators.on_wait = beat

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
