"""Waits of tests: for an event, for as long as a busy machine may take."""

import time
from collections.abc import Callable
from typing import TypeVar

PATIENCE = 300.0  # seconds

T = TypeVar("T")


def wait_for(
    find: Callable[[], T],
    seen: Callable[[], object] = lambda: "nothing",
    seconds: float = PATIENCE,
    pause: float = 0.05,
) -> T:
    """Waits for something to be there, and returns it.

    Seconds are counted by sleeping: those in which the whole machine stands still do not count.

    Args:
      find: returns it, or what is false.
      seen: what is there instead, for the failure's message.
      seconds: that it may take.
      pause: seconds between two looks.
    """
    for _ in range(int(seconds / pause)):
        if found := find():
            return found
        time.sleep(pause)
    raise AssertionError(f"Waited {seconds:.0f} s in vain; seen: {seen()}")
