"""Which deaths of a run's processes are made good, and how soon."""

import time
from collections import deque
from collections.abc import Callable

WINDOW_SECONDS = 600.0  # in which deaths are counted
FIRST_SECONDS = 60.0  # of a run's very first launch: what dies then would die again
LONGEST_DELAY = 8.0


class Restarts:
    """Counts deaths. Each is made good after twice the delay of the last one of the same kind.

    Args:
      limit: deaths that are made good in `WINDOW_SECONDS`.
      is_new: whether this is a run's very first launch.
      clock: seconds.
    """

    def __init__(
        self, limit: int, *, is_new: bool, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.count = 0
        self._limit = limit
        self._clock = clock
        self._from = clock() + (FIRST_SECONDS if is_new else 0.0)
        self._deaths: deque[tuple[float, str]] = deque()

    def delay(self, what: str) -> float | None:
        """Seconds after which what has died starts again: 1, 2, 4, ...; None where it does not."""
        now = self._clock()
        while self._deaths and self._deaths[0][0] < now - WINDOW_SECONDS:
            self._deaths.popleft()
        if now < self._from or len(self._deaths) >= self._limit:
            return None
        before = sum(dead == what for _, dead in self._deaths)
        self._deaths.append((now, what))
        self.count += 1
        return min(2.0**before, LONGEST_DELAY)
