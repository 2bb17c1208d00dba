"""What the learners logged: PopArt's statistics of each task, and all their other metrics."""

from collections.abc import Callable, Sequence

from analysis.report import charts, page
from analysis.report.charts import Chart, Legend
from analysis.report.curves import Curve, binned
from analysis.report.figures import Trace
from analysis.report.page import Section
from analysis.report.run import Line
from run_folder.log_reader import COUNTERS, Log

_ELSEWHERE = (*COUNTERS, "parameter_lag")


def statistics(lines: Sequence[Line], legend: Legend) -> Section | None:
    """PopArt's μ and σ of each task; None where no agent has them."""
    tasks = _columns(lines, lambda column: column.startswith("mu/"))
    tasks = [column.partition("/")[2] for column in tasks]
    if not tasks:
        return None
    drawn = [
        chart
        for task in tasks
        for chart in _charts(
            lines, _statistics_of(task), f"PopArt: μ ± σ of {task}", "agent steps", legend
        )
    ]
    note = (
        "The mean μ of each task's value targets, in its rewards' own units; what lies within one "
        "standard deviation σ is shaded."
    )
    table = _newest(lines, tasks)
    shown = page.of_each(len(tasks), "tasks", page.grid(drawn) + table)
    body = page.paragraph(note) + page.key(legend) + shown
    return Section("PopArt", body, drawn)


def metrics(lines: Sequence[Line], legend: Legend) -> Section:
    """Every other column of the learners' logs."""
    names = _columns(lines, lambda column: "/" not in column and column not in _ELSEWHERE)
    if not names:
        return Section("Learner", page.paragraph("No update has been logged yet."))
    drawn = [
        chart for name in names for chart in _charts(lines, _metric(name), name, "updates", legend)
    ]
    return Section("Learner", page.key(legend) + page.grid(drawn), drawn)


def _newest(lines: Sequence[Line], tasks: Sequence[str]) -> str:
    """The table of the last statistics of the lines that have any."""
    having = [line for line in lines if any(f"mu/{t}" in line.learner.numbers for t in tasks)]
    header, columns = ["task"], [list(tasks)]
    for line in having:
        for name, letter in (("mu", "μ"), ("sigma", "σ")):
            header.append(f"{line.label}: {letter}")
            columns.append([page.number(line.learner.last(f"{name}/{task}")) for task in tasks])
    return page.table(header, zip(*columns, strict=True))


def _columns(lines: Sequence[Line], wanted: Callable[[str], bool]) -> list[str]:
    return list(dict.fromkeys(c for line in lines for c in line.learner.numbers if wanted(c)))


def _charts(
    lines: Sequence[Line],
    read: Callable[[Log], Curve],
    title: str,
    x_label: str,
    legend: Legend,
) -> list[Chart]:
    traces = [Trace(read(line.learner), line.colour, band=True) for line in lines]
    return charts.of_curves(traces, title, x_label, legend)


def _statistics_of(task: str) -> Callable[[Log], Curve]:
    def read(log: Log) -> Curve:
        steps, mu, sigma = log.defined("actor_steps", f"mu/{task}", f"sigma/{task}")
        mean, deviation = binned(steps, mu), binned(steps, sigma).mean
        return mean._replace(low=mean.mean - deviation, high=mean.mean + deviation)

    return read


def _metric(name: str) -> Callable[[Log], Curve]:
    return lambda log: binned(*log.defined("learner_steps", name))
