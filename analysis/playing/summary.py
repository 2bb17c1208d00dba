"""What an evaluation amounts to, in lines for a terminal."""

import math
from collections.abc import Iterator, Mapping

import numpy as np

from analysis.playing import intervals
from analysis.playing.intervals import Interval
from environments import scores

Returns = Mapping[str, np.ndarray]  # task -> undiscounted returns [n]


def of_task(agent: str, task: str, returns: np.ndarray) -> str:
    """A task's mean return with its interval, and in units of human play where that is known."""
    interval = intervals.of_mean(returns)
    line = (
        f"{agent} on {task}: mean return {returns.mean():.2f} over {len(returns)} episodes"
        f"{_bounds(interval, '{:.2f}')}, from {returns.min():.1f} to {returns.max():.1f}"
    )
    score = scores.human_normalised(task, float(returns.mean()))
    if score is None:
        return line
    bounds = (scores.human_normalised(task, bound) for bound in interval)
    normalised = Interval(*(math.nan if bound is None else bound for bound in bounds))
    return f"{line}; human-normalised {score:.1%}{_bounds(normalised, '{:.1%}')}"


def of_suite(agent: str, returns: Returns) -> Iterator[str]:
    """The aggregates over all tasks that have human scores; nothing where fewer than two have."""
    each = [_normalised(task, values) for task, values in returns.items()]
    each = [values for values in each if len(values)]
    if len(each) < 2:
        return
    found = scores.aggregate([float(values.mean()) for values in each])
    bounds = intervals.of_aggregate(each)
    yield f"{agent}, human-normalised over {len(each)} tasks: " + ", ".join(
        f"{name.replace('_', ' ')} {value:.1%}{_bounds(interval, '{:.1%}')}"
        for name, value, interval in zip(found._fields, found, bounds, strict=True)
    )


def _normalised(task: str, returns: np.ndarray) -> np.ndarray:
    """Each return in units of human play; nothing where no human score is known."""
    values = [scores.human_normalised(task, float(value)) for value in returns]
    return np.array([value for value in values if value is not None])


def _bounds(interval: Interval, form: str) -> str:
    """Brackets around an interval; nothing where there is none."""
    if math.isnan(interval.low):
        return ""
    return f" [{form.format(interval.low)}, {form.format(interval.high)}]"
