"""Throughput: how fast a run acted and learned."""

from collections.abc import Sequence

import numpy as np

from analysis.report import charts, figures, page
from analysis.report.charts import Legend
from analysis.report.curves import Curve, rates
from analysis.report.figures import Trace
from analysis.report.page import Section
from analysis.report.run import Line
from run_folder.log_reader import Log

_RECENT_SECONDS = 600.0
_HEADER = (
    "",
    "actor steps/s",
    "in the last 10 minutes",
    "updates/s",
    "in the last 10 minutes",
    "trained steps/s",
)


def section(lines: Sequence[Line], legend: Legend) -> Section:
    """Rates against time, and their means."""
    acted = [
        Trace(_rates(line.run.actor, "actor_steps"), line.colour) for line in lines if line.paces
    ]
    learned = [Trace(_rates(line.learner, "learner_steps"), line.colour) for line in lines]
    drawn = [
        chart
        for title, traces in (("Actor steps per second", acted), ("Updates per second", learned))
        for chart in charts.of_curves(traces, title, figures.HOURS, legend)
    ]
    note = (
        "An actor step is one action of one environment, an update one step of the optimizer. "
        "Trained steps are those of all sequences that updates learned from, burn-in included."
    )
    body = page.paragraph(note) + page.key(legend) + page.grid(drawn)
    return Section("Throughput", body + page.table(_HEADER, map(_row, lines)), drawn)


def mean_rate(log: Log, counter: str, seconds: float = np.inf) -> float:
    """How much a counter grew per second of a log's last `seconds`; NaN of too few rows."""
    walltime, counts = log.defined("walltime", counter)
    since = walltime >= (walltime[-1] if len(walltime) else 0.0) - seconds
    walltime, counts = walltime[since], counts[since]
    if len(walltime) < 2 or walltime[-1] <= walltime[0]:
        return float("nan")
    return float((counts[-1] - counts[0]) / (walltime[-1] - walltime[0]))


def steps_of_update(line: Line) -> float:
    """Steps of all sequences of one update, burn-in included; NaN where nobody here knows."""
    if (agent := line.made) is None:
        return float("nan")
    return sum(
        size * (table.layout.burn_in + table.layout.length)
        for size, table in zip(agent.batch_sizes, agent.tables, strict=True)
    )


def _rates(log: Log, counter: str) -> Curve:
    return rates(*log.defined("walltime", counter), unit=3_600)


def _row(line: Line) -> list[str]:
    updates = mean_rate(line.learner, "learner_steps")
    values = (
        mean_rate(line.run.actor, "actor_steps"),
        mean_rate(line.run.actor, "actor_steps", _RECENT_SECONDS),
        updates,
        mean_rate(line.learner, "learner_steps", _RECENT_SECONDS),
        updates * steps_of_update(line),
    )
    return [line.label, *map(page.number, values)]
