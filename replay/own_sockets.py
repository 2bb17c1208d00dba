"""The TCP sockets of this process, found among its own files.

Linux's table of connections, which psutil reads, has those of every process of the machine.
"""

import contextlib
import os
import socket
from collections.abc import Iterator

_FAMILIES = (socket.AF_INET, socket.AF_INET6)


def tcp() -> Iterator[socket.socket]:
    """A copy of each, closed when the next is asked for; options set there are the socket's own."""
    for name in os.listdir("/proc/self/fd"):
        with (
            contextlib.suppress(OSError),
            _copy(int(name)) as copy,
        ):  # closed meanwhile, or none
            if copy.family in _FAMILIES and copy.type == socket.SOCK_STREAM:
                yield copy


def _copy(number: int) -> socket.socket:
    copy = os.dup(number)
    try:
        return socket.socket(fileno=copy)
    except OSError:
        os.close(copy)
        raise
