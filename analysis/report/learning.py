"""What the learners logged: statistics of each task, as bands, and all their other metrics."""

import itertools
from collections.abc import Callable, Sequence

from agents.entry import Band
from analysis.report import charts, page
from analysis.report.charts import Chart, Legend
from analysis.report.curves import Curve, binned
from analysis.report.figures import Trace
from analysis.report.page import Section
from analysis.report.run import Line
from run_folder.log_reader import COUNTERS, Log

_ELSEWHERE = (*COUNTERS, "parameter_lag")


def bands(lines: Sequence[Line], legend: Legend) -> list[Section]:
    """A section for each band that an agent has, such as PopArt's μ and σ of each task."""
    of_agents = (line.run.settings.entry(line.agent).bands for line in lines)
    found = dict.fromkeys(itertools.chain.from_iterable(of_agents))
    sections = (_section(band, lines, legend) for band in found)
    return [section for section in sections if section is not None]


def _section(band: Band, lines: Sequence[Line], legend: Legend) -> Section | None:
    """Mean ± deviation of each task; None where nothing was logged yet."""
    tasks = _columns(lines, lambda column: column.startswith(f"{band.mean}/"))
    tasks = [column.partition("/")[2] for column in tasks]
    if not tasks:
        return None
    drawn = [
        chart
        for task in tasks
        for chart in _charts(
            lines, _of_task(band, task), f"{_named(band)} of {task}", "actor steps", legend
        )
    ]
    shown = page.of_each(len(tasks), "tasks", page.grid(drawn) + _newest(band, lines, tasks))
    body = page.paragraph(band.note) + page.key(legend) + shown
    return Section(band.title, body, drawn)


def _named(band: Band) -> str:
    return f"{band.title}: {' ± '.join(band.letters)}"


def metrics(lines: Sequence[Line], legend: Legend) -> Section:
    """Every other column of the learners' logs."""
    names = _columns(lines, lambda column: "/" not in column and column not in _ELSEWHERE)
    if not names:
        return Section("Learner", page.paragraph("No update has been logged yet."))
    drawn = [
        chart for name in names for chart in _charts(lines, _metric(name), name, "updates", legend)
    ]
    body = page.key(legend) + page.grid(drawn) + _meanings(lines, names)
    return Section("Learner", body, drawn)


def _meanings(lines: Sequence[Line], names: Sequence[str]) -> str:
    """What those of the columns mean that an agent has something to say of."""
    said: dict[str, str] = {}
    for line in lines:
        said |= line.run.settings.entry(line.agent).columns
    rows = [(name, said[name]) for name in names if name in said]
    return page.table(("column", "what it is"), rows) if rows else ""


def _newest(band: Band, lines: Sequence[Line], tasks: Sequence[str]) -> str:
    """The table of the last statistics of the lines that have any."""
    names = {f"{band.mean}/{task}" for task in tasks}
    having = [line for line in lines if names.intersection(line.learner.numbers)]
    header, columns = ["task"], [list(tasks)]
    for line in having:
        for name, letter in zip((band.mean, band.deviation), band.letters, strict=True):
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


def _of_task(band: Band, task: str) -> Callable[[Log], Curve]:
    def read(log: Log) -> Curve:
        columns = ("actor_steps", f"{band.mean}/{task}", f"{band.deviation}/{task}")
        steps, mu, sigma = log.defined(*columns)
        mean, deviation = binned(steps, mu), binned(steps, sigma).mean
        return mean._replace(low=mean.mean - deviation, high=mean.mean + deviation)

    return read


def _metric(name: str) -> Callable[[Log], Curve]:
    return lambda log: binned(*log.defined("learner_steps", name))
