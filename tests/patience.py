"""Waits of tests: for an event, for as long as a busy machine may take."""

import time
from collections.abc import Callable
from typing import TypeVar

PATIENCE = 300.0  # seconds
_POLL_SECONDS = 0.05

T = TypeVar("T")


def wait_for(
    find: Callable[[], T],
    seen: Callable[[], object] = lambda: "nothing",
    seconds: float = PATIENCE,
) -> T:
    """Waits for something to be there, and returns it.

    Seconds are counted by sleeping: those in which the whole machine stands still do not count.

    Args:
      find: returns it, or what is false.
      seen: what is there instead, for the failure's message.
      seconds: that it may take.
    """
    for _ in range(int(seconds / _POLL_SECONDS)):
        if found := find():
            return found
        time.sleep(_POLL_SECONDS)
    raise AssertionError(f"Waited {seconds:.0f} s in vain; seen: {seen()}")
