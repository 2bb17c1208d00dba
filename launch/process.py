"""What every node's process does first: it outlives neither its launcher nor its own errors silently."""

import os
import pathlib
import signal
import sys
import threading
import time
import traceback
from types import TracebackType

CRASH_FILE = "crash.txt"
_PARENT_SECONDS = 1.0


def enter(run_dir: str, title: str) -> None:
    """Makes this process a node of a run. Called first, in its main thread.

    Ctrl-C, which a terminal sends to every process of the group, is left to the launcher, who alone decides
    how a run ends; the launcher's death is this process's end; and the traceback of an error that ends it is left in the
    run folder, where the launcher finds and shows it.

    Args:
      run_dir: the run folder.
      title: what the node is, for the one who reads the traceback.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_exit_with_parent, args=(os.getppid(),), daemon=True).start()
    crash_file = pathlib.Path(run_dir) / "nodes" / CRASH_FILE
    show = sys.excepthook

    def record(
        kind: type[BaseException], error: BaseException, trace: TracebackType | None
    ) -> None:
        lines = "".join(traceback.format_exception(kind, error, trace))
        with crash_file.open("a") as file:
            file.write(f"The {title} node crashed:\n{lines}")
        show(kind, error, trace)

    sys.excepthook = record


def _exit_with_parent(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(_PARENT_SECONDS)
    os._exit(1)  # no clean-up: whoever would wait for it is gone
