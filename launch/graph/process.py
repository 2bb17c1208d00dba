"""What every node's process does first: it outlives no launcher and dies of no unseen error."""

import contextlib
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Sequence
from types import TracebackType

import launchpad as lp

from launch.graph import temporary_files
from run_folder import mirrors
from run_folder.layout import RunFolder

LAUNCHER = "RECURRENT_REPLAY_LAUNCHER"  # environment variable: the launching process's id
GRACE_SECONDS = 1.0  # in which a node that met an error hears whether another one crashed before
_LAUNCHER_SECONDS = 1.0


def enter(run_dir: str, title: str, goes_on_with: Sequence[str] = ()) -> None:
    """Makes this process a node of a run. Called first, in its main thread.

    The traceback of an error that ends it is left in the run folder, where the launcher finds and
    shows it. A node that a launcher on this machine has started also leaves that one's process
    group, to all of which a terminal sends Ctrl-C and `timeout` a SIGTERM: the launcher alone
    decides how a run ends, and its death is this process's end.

    Args:
      run_dir: the run folder.
      title: what the node is, for the one who reads the traceback.
      goes_on_with: files, as patterns, that earlier parts of the run left in its folder and that
        this node reads or adds to.
    """
    if LAUNCHER in os.environ:
        _follow(int(os.environ[LAUNCHER]))
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
        if not lp.wait_for_stop(GRACE_SECONDS):
            lines = "".join(traceback.format_exception(kind, error, trace))
            # A full disk is no reason to hide the error from the node's own output.
            with contextlib.suppress(OSError), crash_file.open("x") as file:
                file.write(f"The {title} node crashed:\n{lines}")
        show(kind, error, trace)

    sys.excepthook = record


def _follow(launcher: int) -> None:
    """Leaves all signals but SIGTERM to the launcher, and ends with it."""
    with contextlib.suppress(PermissionError):  # a session's leader has a group of its own
        os.setpgrp()
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # else it stays blocked, as it was inherited
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})  # see `supervisor.run`
    threading.Thread(target=_exit_with, args=(launcher,), daemon=True).start()


def _exit_with(launcher: int) -> None:
    """Ends this process soon after its launcher, without a clean-up that nobody would wait for.

    The parent's id is compared with one that was told, not with what it was at the start: by then
    the launcher may be gone already.
    """
    while os.getppid() == launcher:
        time.sleep(_LAUNCHER_SECONDS)
    temporary_files.remove()
    os._exit(1)
