"""The process of Python that has started this command, where one has: see `launch.child`."""

import os
import signal
import sys

from launch.local import processes

REFUSED = 2  # how a command ends that cannot do what it was told
CALLER = "RECURRENT_REPLAY_CALLER"  # environment variable: its process, and a file to be told by
_files: list[int] = []


def heed() -> None:
    """Ends this process in order with its caller, who hears `tell`."""
    if told := os.environ.pop(CALLER, ""):  # what is started from here has another caller
        caller, descriptor = map(int, told.split())
        processes.end_with_parent()
        if os.getppid() != caller:  # it was gone before
            sys.exit(128 + signal.SIGTERM)
        os.set_inheritable(descriptor, False)
        _files.append(descriptor)


def tell(why: str) -> bool:
    """Tells the caller why this process refuses what it was told, or ends; whether there is one."""
    for descriptor in _files:
        os.write(descriptor, why.encode(errors="replace"))
    return bool(_files)
