"""Percentile bootstrap intervals: how far a mean over episodes may be from the true one.

Efron and Tibshirani 1993, Section 13.3. They tell of one set of parameters that is played again and
again, and nothing of how much another training run would differ.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from environments import scores

LEVEL = 0.95
RESAMPLES = 10_000
_SEED = 0  # the same episodes always give the same interval
_AT_ONCE = 1 << 24  # values of resamples at a time: all of those of many episodes fit no memory

Values = Sequence[float] | np.ndarray  # [n], returns of independent episodes


class Interval(NamedTuple):
    """The ends of the middle `LEVEL` of resampled statistics; NaN where they cannot differ."""

    low: float
    high: float


def of_mean(*samples: Values) -> Interval:
    """The interval of a sample's mean, of several of the mean of their means.

    NaN where one has a single episode.
    """
    return _middle(_resampled(np.mean, *samples).mean(axis=0))


def of_median(values: Values) -> Interval:
    """The interval of a sample's median; NaN where all values are the same."""
    drawn = _resampled(np.median, values)[0]
    return _middle(drawn if np.ptp(drawn) else np.full_like(drawn, np.nan))


def of_difference(values: Values, others: Values) -> Interval:
    """The interval of mean(values) − mean(others), each resampled by itself."""
    means, means_of_others = _resampled(np.mean, values, others)
    return _middle(means - means_of_others)


def of_aggregate(normalised: Sequence[np.ndarray]) -> dict[str, Interval]:
    """The intervals of `scores.aggregate` over the tasks' means, by its fields.

    Each task's own episodes are resampled; the tasks are not.

    Args:
      normalised: each task's human-normalised returns `[n]`. Where one has a single episode, the
        intervals are NaN.
    """
    means = _resampled(np.mean, *normalised)
    aggregates = np.array([scores.aggregate(row) for row in means.T])
    names = scores.Aggregate._fields
    return {name: _middle(column) for name, column in zip(names, aggregates.T, strict=True)}


def _resampled(statistic: Callable[..., np.ndarray], *samples: Values) -> np.ndarray:
    """Of as many values of each sample, drawn with replacement: `[samples, RESAMPLES]`."""
    rng, found = np.random.default_rng(_SEED), []
    for sample in samples:
        values, n = np.asarray(sample), len(sample)
        rows = max(1, _AT_ONCE // n)
        parts = [
            statistic(values[rng.integers(n, size=(min(rows, RESAMPLES - done), n))], axis=1)
            for done in range(0, RESAMPLES, rows)
        ]
        found.append(np.concatenate(parts))
    if min(map(len, samples)) < 2:
        return np.full((len(samples), RESAMPLES), np.nan)
    return np.asarray(found)


def _middle(statistics: np.ndarray) -> Interval:
    low, high = np.quantile(statistics, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Interval(float(low), float(high))
