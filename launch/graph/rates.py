"""How fast a run goes: what its counts have grown by, lately."""

from collections import deque
from collections.abc import Mapping

COUNTS = ("actor_steps", "learner_steps")
_SAMPLES = 30


class Rates:
    """Counts a second, over the last thirty times that they were taken."""

    def __init__(self) -> None:
        self._taken: deque[tuple[float, ...]] = deque(maxlen=_SAMPLES)

    def take(self, walltime: float, counts: Mapping[str, float]) -> None:
        """Takes the run's counts at a time in seconds."""
        self._taken.append((walltime, *(counts[name] for name in COUNTS)))

    def clear(self) -> None:
        """Forgets all, as when a count has gone back."""
        self._taken.clear()

    def now(self) -> dict[str, float]:
        """By the names of `COUNTS`; 0 before counts were taken twice."""
        if not self._taken:
            return dict.fromkeys(COUNTS, 0.0)
        (began, *before), (ended, *after) = self._taken[0], self._taken[-1]
        seconds = max(ended - began, 1e-3)
        return {
            name: (new - old) / seconds
            for name, old, new in zip(COUNTS, before, after, strict=True)
        }
