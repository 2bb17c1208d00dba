"""Waiting for what may take minutes, a level that loads for one, and saying so."""

from collections.abc import Callable
from multiprocessing.connection import Connection

SECONDS = 1.0  # between two calls of `on_wait`

on_wait: Callable[[], None] = lambda: None  # noqa: E731
"""Called again and again while something is waited for. Whoever plays may put its own here."""


def poll(connection: Connection, seconds: float) -> bool:
    """Whether a connection has something to read, or is closed, within so many seconds.

    Raises:
      OSError: it is closed on this side.
    """
    while seconds > SECONDS:
        if connection.poll(SECONDS):
            return True
        on_wait()
        seconds -= SECONDS
    return connection.poll(seconds)
