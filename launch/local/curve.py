"""A curve in characters: each is a cell of 2 x 4 dots, as braille has them."""

import math
from collections.abc import Iterable, Iterator

import numpy as np

MOST_POINTS = 400  # twice as many are thinned out
LEAST_POINTS = 2
_BLANK = 0x2800  # of Unicode, the cell without dots
_DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))  # by row and column of a cell
_NUMBER = 8  # characters of a number beside the curve


class Curve:
    """Points (x, y) as they come, x never falling.

    Args:
      points: that there are.
    """

    def __init__(self, points: Iterable[tuple[float, float]] = ()) -> None:
        self._points: list[tuple[float, float]] = []
        for x, y in points:
            self.add(x, y)

    @property
    def is_drawn(self) -> bool:
        """Whether there is enough to be drawn."""
        return len(self._points) >= LEAST_POINTS

    def add(self, x: float, y: float) -> None:
        """Adds a point, unless y is NaN; one of the same x takes the last one's place."""
        if math.isnan(y):
            return
        if self._points and self._points[-1][0] >= x:
            self._points.pop()
        self._points.append((x, y))
        if len(self._points) > 2 * MOST_POINTS:
            self._points = self._points[::2] + self._points[-1:] * (len(self._points) % 2 == 0)

    def lines(self, width: int, height: int) -> list[str]:
        """The curve with its greatest and least y on the left and its last x below.

        Args:
          width: characters of a line.
          height: lines.
        """
        columns, rows = width - _NUMBER - 1, max(1, height - 1)
        (first, _), (last, _) = self._points[0], self._points[-1]
        values = [y for _, y in self._points]
        low, high = min(values), max(values)
        cells = [[0] * columns for _ in range(rows)]
        for column, dots in enumerate(self._dots(2 * columns, 4 * rows, low, high)):
            for row in dots:
                cells[row // 4][column // 2] |= _DOTS[row % 4][column % 2]
        sides = [_number(high), *[""] * (rows - 2), *([_number(low)] if rows > 1 else [])]
        drawn = [
            f"{side:>{_NUMBER}} {''.join(chr(_BLANK + cell) for cell in line)}"
            for side, line in zip(sides, cells, strict=True)
        ]
        below = f"{first:,.0f} to {last:,.0f} steps: recent return"
        return [*drawn, f"{'':{_NUMBER}} {below[:columns]}"]

    def _dots(self, columns: int, rows: int, low: float, high: float) -> Iterator[range]:
        """The rows of dots that each column of them has: from the one before on, without a gap."""
        x, y = np.array(self._points).T
        values = np.interp(np.linspace(x[0], x[-1], columns), x, y)
        shares = (values - low) / (high - low) if high > low else np.full(columns, 0.5)
        found = np.rint((1 - shares) * (rows - 1)).astype(int).tolist()
        for before, row in zip([found[0], *found], found, strict=False):
            yield range(min(before, row), max(before, row) + 1)


def _number(value: float) -> str:
    """A number of at most so many characters."""
    return f"{value:.4g}" if len(f"{value:.4g}") <= _NUMBER else f"{value:.1e}"
