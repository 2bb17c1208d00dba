"""The returns of several tasks, taken together: the columns that every log of a suite has."""

import math
from collections.abc import Mapping

from environments import scores


def overall(returns: Mapping[str, float]) -> float:
    """The number by which a run's evaluations are compared.

    Args:
      returns: task -> mean return; NaN of one that was not played.

    Returns:
      The mean over the tasks: of human-normalised returns where every task has human scores, else
      of the returns. NaN where a task was not played.
    """
    normalised = [scores.human_normalised(task, value) for task, value in returns.items()]
    known = [value for value in normalised if value is not None]
    each = known if len(known) == len(returns) else list(returns.values())
    return sum(each) / len(each)


def aggregates(returns: Mapping[str, float]) -> dict[str, float]:
    """Human-normalised returns over all tasks that have human scores and have been played.

    Args:
      returns: task -> mean return; NaN where no episode has ended.

    Returns:
      How many tasks these are, and the median, the mean, and the mean of what is cut off at 1;
      1 is a human's return. NaN before the first episode, nothing where no task has human scores.
    """
    normalised = [scores.human_normalised(task, value) for task, value in returns.items()]
    if all(value is None for value in normalised):
        return {}
    played = [value for value in normalised if value is not None and not math.isnan(value)]
    median, mean, mean_capped = scores.aggregate(played) if played else (math.nan,) * 3
    return dict(
        normalised_tasks=len(played),
        median_normalised=median,
        mean_normalised=mean,
        mean_capped=mean_capped,
    )


def columns(returns: Mapping[str, float]) -> dict[str, float]:
    """The aggregates and every task's own return, as a log's columns; nothing for a single task."""
    if len(returns) == 1:
        return {}
    return aggregates(returns) | {f"return/{task}": value for task, value in returns.items()}


def of_columns(row: Mapping[str, float]) -> dict[str, float]:
    """Every task's own return in a row of a log, as `columns` gave it; none of a single task."""
    return {name[len("return/") :]: row[name] for name in row if name.startswith("return/")}


def percent(normalised: Mapping[str, float]) -> str:
    """The aggregates in one line; a dash while no task with human scores has been played."""
    if math.isnan(normalised["median_normalised"]):
        return "-"
    return (
        f"median {normalised['median_normalised']:.1%}, mean {normalised['mean_normalised']:.1%}, "
        f"capped {normalised['mean_capped']:.1%} of {normalised['normalised_tasks']:.0f} tasks"
    )
