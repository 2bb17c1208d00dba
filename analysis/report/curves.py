"""Makes few points of many: what a figure draws must not grow with a run's length."""

from typing import NamedTuple

import numpy as np

BINS = 100  # about one for each three pixels of a figure


class Curve(NamedTuple):
    """Points in the order of x; all arrays are `[points]`."""

    x: np.ndarray
    mean: np.ndarray
    low: np.ndarray  # a quarter of what was averaged lies below ...
    high: np.ndarray  # ... and a quarter above


def binned(x: np.ndarray, y: np.ndarray, *, bins: int = BINS, least: int = 1) -> Curve:
    """Means of what falls into bins of equal width.

    Args:
      x: `[N]`.
      y: `[N]`, finite.
      bins: the most there may be.
      least: values that a bin should hold on average: of few values there are fewer bins.

    Returns:
      A point for each bin that is not empty, at the mean x of what it holds.
    """
    if not len(x):
        return Curve(*4 * [np.empty(0)])
    bins = int(np.clip(len(x) // least, 1, bins))
    edges = np.linspace(x.min(), x.max(), bins + 1)
    place = np.clip(np.searchsorted(edges, x, side="right") - 1, 0, bins - 1)
    order = np.argsort(place, kind="stable")
    cuts = np.flatnonzero(np.diff(place[order])) + 1
    points = [
        (xs.mean(), ys.mean(), *np.percentile(ys, (25, 75)))
        for xs, ys in zip(np.split(x[order], cuts), np.split(y[order], cuts), strict=True)
    ]
    return Curve(*np.asarray(points).T)


def rates(seconds: np.ndarray, counts: np.ndarray, *, bins: int = BINS, unit: float = 1.0) -> Curve:
    """How fast a counter grew, per second, over equal parts of the time.

    Args:
      seconds: `[N]`, growing.
      counts: `[N]`, the counter's values then; between them it grows evenly.
      bins: the most parts there may be; there is at most one for each value after the first.
      unit: seconds of one unit of the curve's x.

    Returns:
      A point in the middle of each part. None of fewer than two values, or of no time.
    """
    if len(seconds) < 2 or seconds[-1] <= seconds[0]:
        return Curve(*4 * [np.empty(0)])
    edges = np.linspace(seconds[0], seconds[-1], min(bins, len(seconds) - 1) + 1)
    rate = np.diff(np.interp(edges, seconds, counts)) / np.diff(edges)
    return Curve((edges[:-1] + edges[1:]) / 2 / unit, rate, rate, rate)
