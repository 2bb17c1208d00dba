"""Learning curves: what every task returned, against steps and against time."""

import functools
from collections.abc import Callable, Sequence
from typing import NamedTuple

from analysis.report import charts, figures, page
from analysis.report.charts import Chart, Legend
from analysis.report.curves import Curve, binned
from analysis.report.figures import Trace
from analysis.report.page import Section
from analysis.report.run import Line
from run_folder.log_reader import Log

EPISODES_PER_BIN = 10

_TOGETHER = "Median human-normalised return"
_EXPLANATION = (
    "Lines are means over training episodes, in which each actor has its own exploration; the "
    "middle half of the episodes is shaded. Dots are the evaluator's means."
)


class Axis(NamedTuple):
    """What a curve is drawn against."""

    column: str
    unit: float
    label: str


STEPS = Axis("actor_steps", 1, "actor steps")
HOURS = Axis("walltime", 3_600, figures.HOURS)


def section(lines: Sequence[Line], legend: Legend) -> Section:
    """Curves of all tasks together, where they have human scores, and of each."""
    tasks = list(dict.fromkeys(task for line in lines for task in line.run.settings.tasks))
    together = [
        chart
        for axis in (STEPS, HOURS)
        for chart in _charts(lines, _normalised, _TOGETHER, axis, legend, reference=1.0)
    ]
    by_steps_alone = len(tasks) > page.MANY and together
    each = [
        chart
        for task in tasks
        for axis in ((STEPS,) if by_steps_alone else (STEPS, HOURS))
        for chart in _charts(lines, functools.partial(_of_task, task), task, axis, legend)
    ]
    body = page.paragraph(_EXPLANATION) + page.key(legend) + page.pairs(together)
    if not each:
        body += page.paragraph("No episode has ended yet.")
    body += page.of_each(len(tasks), "tasks", page.pairs(each))
    return Section("Learning curves", body, [*together, *each])


def _charts(
    lines: Sequence[Line],
    traces: Callable[[Line, Axis], list[Trace]],
    title: str,
    axis: Axis,
    legend: Legend,
    reference: float | None = None,
) -> list[Chart]:
    title = f"{title}, by {axis.label.split()[-1]}"
    drawn = [trace for line in lines for trace in traces(line, axis)]
    return charts.of_curves(drawn, title, axis.label, legend, reference=reference)


def _of_task(task: str, line: Line, axis: Axis) -> list[Trace]:
    if task not in line.run.settings.tasks:
        return []
    episodes = line.episodes(task)
    if not len(line.run.episodes) and len(line.run.settings.tasks) == 1 and line.paces:
        episodes = line.run.actor  # a mean every ten seconds is better than nothing
    acted = _curve(episodes, axis, "episode_return", least=EPISODES_PER_BIN)
    evaluated = _curve(line.evaluator, axis, line.evaluated(task))
    return [Trace(acted, line.colour, band=True), Trace(evaluated, line.colour, "o--")]


def _normalised(line: Line, axis: Axis) -> list[Trace]:
    evaluated = Trace(_curve(line.evaluator, axis, "median_normalised"), line.colour, "o--")
    acted = Trace(_curve(line.run.tasks, axis, "median_normalised"), line.colour)
    return [acted, evaluated] if line.paces else [evaluated]


def _curve(log: Log, axis: Axis, column: str, least: int = 1) -> Curve:
    x, y = log.defined(axis.column, column)
    return binned(x / axis.unit, y, least=least)
