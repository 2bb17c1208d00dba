"""What an agent returned when it was evaluated, by `launch.evaluate` or by its own run."""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from analysis.playing.files import Played, Row
from analysis.report.run import Line
from run_folder import task_returns


class Evaluation(NamedTuple):
    """One of them."""

    learner_steps: int
    returns: Mapping[str, float]  # task -> mean


def by_command(line: Line) -> list[Evaluation]:
    """Those of `launch.evaluate` in which the agent played as its paper has it, by update."""
    found = [
        Evaluation(rows[0].learner_steps, _means(rows))
        for rows in line.run.evaluations.values()
        if rows and rows[0].agent == line.agent and not _is_variation(line, rows[0])
    ]
    return sorted(found, key=lambda evaluation: evaluation.learner_steps)


def curve(line: Line) -> list[tuple[int, float]]:
    """Every evaluation, by update: of a task its mean, of several the median normalised one.

    Of two of the same update, that of `launch.evaluate`, which plays more, is the later one.
    """
    several = len(line.run.settings.tasks) > 1
    column = "median_normalised" if several else "episode_return"
    steps, values = line.evaluator.defined("learner_steps", column)
    found = list(zip(steps.astype(int).tolist(), values.tolist(), strict=True))
    for evaluation in by_command(line):
        if several:
            value = task_returns.aggregates(evaluation.returns).get(column, math.nan)
        else:
            value = next(iter(evaluation.returns.values()))
        if not math.isnan(value):
            found.append((evaluation.learner_steps, value))
    return sorted(found, key=lambda point: point[0])


def _means(rows: Sequence[Row]) -> dict[str, float]:
    played: dict[str, list[float]] = {}
    for row in rows:
        played.setdefault(row.task, []).append(row.episode_return)
    return {task: float(np.mean(values)) for task, values in played.items()}


def _is_variation(line: Line, played: Played) -> bool:
    """Whether the agent was made to act otherwise than it is evaluated."""
    config = line.run.settings.configs[line.agent]
    usual = getattr(config, "evaluation_epsilon", None)
    return played.epsilon != usual or played.memory_steps is not None
