"""What every task returned in the end: bars, in units of human play where those are known."""

import math
from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure

from analysis.report import charts, evaluated, page
from analysis.report.charts import Legend
from analysis.report.figures import Bars, bars
from analysis.report.page import Section
from analysis.report.run import Line, recent
from environments import scores, suites
from run_folder.episodes import RECENT_EPISODES

Returns = Mapping[str, float]  # by task

_HUMAN, _RETURN = "Human-normalised return", "Return"


def section(lines: Sequence[Line], legend: Legend) -> Section:
    """Bars, and the table of what they show."""
    source, found = returns(lines)
    tasks = list(dict.fromkeys(task for of_line in found for task in of_line))
    if not tasks:
        return Section("Tasks", page.paragraph("No episode has ended yet."))
    human, others = _sorted(tasks, found[0])
    drawn = []
    if human:
        shares = [{task: percent(task, of_line[task]) for task in of_line} for of_line in found]
        figure = _bars(lines, human, shares, _HUMAN, "% from random to human play", reference=100)
        drawn.append(charts.of_figure(figure, _HUMAN, legend))
    if others:
        figure = _bars(lines, others, found, _RETURN, "mean return")
        drawn.append(charts.of_figure(figure, _RETURN, legend))
    body = page.paragraph(f"Means of {source}.") + page.key(legend) + page.grid(drawn)
    table = _table(lines, human + others, found, with_shares=bool(human))
    body += page.of_each(len(tasks), "tasks", table)
    return Section("Tasks", body, drawn)


def returns(lines: Sequence[Line]) -> tuple[str, list[Returns]]:
    """What is compared, and each line's mean return of every task in it.

    It is the best that all lines have, so that none looks better by how it was measured: there is
    no exploration in an evaluation.
    """
    sources = {
        "the newest launch.evaluate": _evaluated,
        "the run's own newest evaluation": _evaluated_by_run,
        f"the last {RECENT_EPISODES} training episodes": _trained,
    }
    for source, read in sources.items():
        found = [read(line) for line in lines]
        if all(found):
            return source, found
    return source, found


def _sorted(tasks: Sequence[str], returns: Returns) -> tuple[list[str], list[str]]:
    """Those with human scores, from the best one of the first line on, and the others."""
    shares = {task: percent(task, returns.get(task, -math.inf)) for task in tasks}
    human = [task for task in tasks if not math.isnan(shares[task])]
    others = [task for task in tasks if math.isnan(shares[task])]
    return sorted(human, key=lambda task: -shares[task]), others


def _table(
    lines: Sequence[Line], tasks: Sequence[str], found: Sequence[Returns], *, with_shares: bool
) -> str:
    header, columns = ["task"], [list(tasks)]
    for line, of_line in zip(lines, found, strict=True):
        values = [of_line.get(task, math.nan) for task in tasks]
        header.append(f"{line.label}: return")
        columns.append([page.number(value) for value in values])
        if with_shares:
            shares = map(percent, tasks, values)
            header.append("normalised")
            columns.append([with_unit(share) for share in shares])
    return page.table(header, zip(*columns, strict=True))


def _bars(
    lines: Sequence[Line],
    tasks: Sequence[str],
    found: Sequence[Returns],
    title: str,
    label: str,
    reference: float | None = None,
) -> Figure:
    groups = [
        Bars([of_line.get(task, math.nan) for task in tasks], line.colour)
        for line, of_line in zip(lines, found, strict=True)
    ]
    return bars(tasks, groups, title, label, reference=reference)


def with_unit(value: float) -> str:
    """A percentage as it is read, a dash for none."""
    return page.number(value, digits=3) + (" %" if math.isfinite(value) else "")


def percent(task: str, value: float) -> float:
    """A return in hundredths of the way from random to human play; NaN where that is unknown."""
    score = scores.human_normalised(task, value)
    return math.nan if score is None else 100 * score


def _evaluated(line: Line) -> Returns:
    found = evaluated.by_command(line)
    return found[-1].returns if found else {}


def _evaluated_by_run(line: Line) -> Returns:
    tasks = line.run.settings.tasks
    return _known(
        {suites.evaluation_task(t): line.evaluator.last(line.evaluated(t)) for t in tasks}
    )


def _trained(line: Line) -> Returns:
    return _known({t: recent(line.episodes(t), RECENT_EPISODES) for t in line.run.settings.tasks})


def _known(returns: Returns) -> Returns:
    return {task: value for task, value in returns.items() if not math.isnan(value)}
