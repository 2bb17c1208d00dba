"""What every node's process does first: it dies of no unseen error."""

import contextlib
import signal
import sys
import threading
import traceback
from collections.abc import Sequence
from types import TracebackType

import launchpad as lp

from run_folder import mirrors
from run_folder.layout import RunFolder

TERMINATED = 128 + signal.SIGTERM  # exit code, as a shell has it: ended before the run has
DONE = 4  # of a node that returned: a 0 may be anybody's, who ended the process from within
CANNOT_PLAY = 3  # of a node that ended by a CannotPlayError
GRACE_SECONDS = 1.0  # in which a node that met an error hears whether another one crashed before


def wait_for_stop(seconds: float | None = None) -> bool:
    """Waits until this node is asked to end, or for so long; says whether it was asked.

    `launchpad.wait_for_stop` of the build that is pinned waits, and says nothing. As there, only a
    node's main thread may call it.
    """
    return stop_event().wait(seconds)


def stop_event() -> threading.Event:
    """Set when this node is asked to end. Launchpad tells it to a node's main thread alone."""
    event: threading.Event = lp.stop_event()
    return event


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
