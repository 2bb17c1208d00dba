"""Processes that somebody's code has started, which end with the process that it ran in.

A helper may be in a session of its own, and whoever started it may be gone. So who answers for them
all has the kernel hand them over: Linux makes it the parent of all that its children leave behind.
"""

import contextlib
import ctypes
from collections.abc import Callable, Iterator

import psutil

_SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER
_KILL_SECONDS = 5.0  # from a SIGKILL to the end of a process, whatever holds it


def adopt(adopts: bool = True) -> None:
    """Makes this process the parent of what its children leave behind, or no longer."""
    ctypes.CDLL(None, use_errno=True).prctl(_SUBREAPER, int(adopts), 0, 0, 0)


def kill(is_kept: Callable[[psutil.Process], bool] = lambda child: False) -> None:
    """Kills this process's children but for some, with all that they have started."""
    seen = set[int]()
    while left := [child for child in psutil.Process().children() if child.pid not in seen]:
        seen.update(child.pid for child in left)
        killed = [child for child in left if not is_kept(child)]
        for child in killed:
            with contextlib.suppress(psutil.NoSuchProcess):
                for each in (*child.children(recursive=True), child):
                    with contextlib.suppress(psutil.Error):
                        each.kill()
        psutil.wait_procs(killed, _KILL_SECONDS)  # what they leave behind is this process's then


@contextlib.contextmanager
def ended() -> Iterator[None]:
    """Whatever is started within ends with it at the latest."""
    before = {child.pid for child in psutil.Process().children()}
    adopt()
    try:
        yield
    finally:
        kill(lambda child: child.pid in before)
        adopt(False)
