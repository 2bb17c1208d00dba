"""How often a log has a row: often enough for a curve of a run that lasts seconds."""

from collections.abc import Mapping

LOG_SECONDS = 10.0
PARTS = 100  # of a run's limit, each with a row at least


class Cadence:
    """Says when the next row is due: some seconds after the last one, or a part of a limit later.

    Args:
      limits: of the run, by the name of what they count; None is no limit.
      counts: at which the rows begin, by name.
      now: seconds of any clock; -infinity if the first row is due at once.
    """

    def __init__(
        self, limits: Mapping[str, int | None], counts: Mapping[str, float], now: float
    ) -> None:
        self._limits = {name: limit for name, limit in limits.items() if limit is not None}
        self._begin(self._parts(counts), now)

    def due(self, counts: Mapping[str, float], now: float) -> bool:
        """Whether a row is to be written now; if so, the next one is awaited from here on."""
        parts = self._parts(counts)
        is_due = now >= self._next or parts != self._passed
        if is_due:
            self._begin(parts, now)
        return is_due

    def _begin(self, parts: list[int], now: float) -> None:
        self._passed, self._next = parts, now + LOG_SECONDS

    def _parts(self, counts: Mapping[str, float]) -> list[int]:
        return [int(PARTS * counts[name] // limit) for name, limit in self._limits.items()]


def steps_between(limit: int | None, share: float) -> float:
    """How many steps one of several makes while all together make a part of their limit.

    Args:
      limit: of all together; None is no limit.
      share: of the one, in 0..1.
    """
    return float("inf") if limit is None else limit * share / PARTS
