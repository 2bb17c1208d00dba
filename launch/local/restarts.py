"""Which deaths of a run's processes are made good, and how soon."""

import time
from collections.abc import Callable

WINDOW_SECONDS = 600.0  # in which deaths are counted
FIRST_SECONDS = 60.0  # of a run's very first launch: what dies then would die again
LONGEST_DELAY = 8.0
PROGRAM = "the program"  # as what dies: it begins again from what was saved


class Restarts:
    """Counts deaths. Each is made good after twice the delay of the last one of the same kind.

    A death after which the program begins again counts, beyond `WINDOW_SECONDS`, until the run has
    saved something new: or it would begin again for ever from where it began.

    Args:
      limit: deaths that are made good, of those that count.
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
        self._deaths: list[tuple[float, str]] = []
        self._saved_at = clock()

    def saved(self) -> None:
        """The run has saved something new."""
        self._saved_at = self._clock()

    def why_not(self) -> str:
        """Why what dies now is not made good, as a sentence; empty where it is."""
        if self._clock() < self._from:
            return (
                f"It is not started again: what dies in the first {FIRST_SECONDS:.0f} s of a new "
                "run would die again."
            )
        if len(self._counted()) >= self._limit:
            return (
                f"It is not started again: --restarts={self._limit} mends so many deaths in "
                f"{WINDOW_SECONDS / 60:.0f} minutes, or from one checkpoint to the next."
            )
        return ""

    def delay(self, what: str) -> float:
        """Seconds after which what has died starts again: 1, 2, 4, ..."""
        self._deaths = self._counted()
        before = sum(dead == what for _, dead in self._deaths)
        self._deaths.append((self._clock(), what))
        self.count += 1
        return min(2.0**before, LONGEST_DELAY)

    def _counted(self) -> list[tuple[float, str]]:
        lately = self._clock() - WINDOW_SECONDS
        return [
            (then, what)
            for then, what in self._deaths
            if then >= lately or (what == PROGRAM and then >= self._saved_at)
        ]
