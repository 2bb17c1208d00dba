"""How far a mean over episodes may be from the true one: percentile bootstrap intervals.

Efron and Tibshirani 1993, Section 13.3. They speak of one set of parameters, played again and
again; how much another training run would differ takes other training runs.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from environments import scores

LEVEL = 0.95
RESAMPLES = 10_000
_SEED = 0  # the same episodes always give the same interval


class Interval(NamedTuple):
    """Where the middle `LEVEL` of the resampled statistics lie; NaN where they cannot differ."""

    low: float
    high: float


class AggregateIntervals(NamedTuple):
    """Of every field of `scores.Aggregate`."""

    median: Interval
    mean: Interval
    mean_capped: Interval


def of_mean(values: Sequence[float] | np.ndarray) -> Interval:
    """The interval of a mean.

    Args:
      values: `[n]`, returns of independent episodes; NaN comes back for a single one.
    """
    if len(values) < 2:
        return Interval(np.nan, np.nan)
    return _middle(_resampled_means(values, np.random.default_rng(_SEED)))


def of_difference(
    values: Sequence[float] | np.ndarray, others: Sequence[float] | np.ndarray
) -> Interval:
    """The interval of mean(values) − mean(others), each resampled by itself.

    Args:
      values: `[n]`; NaN comes back where these or the others are but one.
      others: `[m]`.
    """
    if min(len(values), len(others)) < 2:
        return Interval(np.nan, np.nan)
    rng = np.random.default_rng(_SEED)
    return _middle(_resampled_means(values, rng) - _resampled_means(others, rng))


def of_aggregate(normalised: Sequence[np.ndarray]) -> AggregateIntervals:
    """The intervals of what `scores.aggregate` makes of the tasks' means.

    The tasks stay what they are; of each, its own episodes are resampled.

    Args:
      normalised: of each task human-normalised returns `[n]`; NaN comes back where a task has but
        one.
    """
    if min(map(len, normalised)) < 2:
        return AggregateIntervals(*[Interval(np.nan, np.nan)] * 3)
    rng = np.random.default_rng(_SEED)
    means = np.stack([_resampled_means(values, rng) for values in normalised], axis=1)  # [R, K]
    aggregates = np.array([scores.aggregate(row) for row in means])  # [R, 3]
    return AggregateIntervals(*(_middle(column) for column in aggregates.T))


def _resampled_means(values: Sequence[float] | np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Means `[RESAMPLES]` of as many values `[n]`, drawn with replacement."""
    drawn = rng.integers(len(values), size=(RESAMPLES, len(values)))  # [R, n]
    means: np.ndarray = np.asarray(values)[drawn].mean(axis=1)
    return means


def _middle(statistics: np.ndarray) -> Interval:
    low, high = np.quantile(statistics, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Interval(float(low), float(high))
