"""What the learners were given: how often, how old, and by which priorities."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from analysis.report import charts, page
from analysis.report.charts import Chart, Legend
from analysis.report.curves import binned
from analysis.report.figures import Steps, Trace, histogram
from analysis.report.page import Section
from analysis.report.run import Line
from run_folder.log_reader import Log

BINS = 40  # of the histogram

_PRIORITIES = "Priorities in replay"
_EXPLANATION = (
    "Replays per observation: how many times each step was learned from. Parameter lag: updates "
    "between the parameters that acted and those that learn. The priorities are those of all items "
    "in the newest checkpoint of the replay; dashed, of what is drawn by them."
)
_HEADER = (
    "priorities",
    "items",
    "median",
    "99th percentile",
    "largest",
    "samples that go to the highest tenth",
    "times an item was sampled",
)


class Priorities(NamedTuple):
    """The items of a prioritized table."""

    priority: np.ndarray  # [items]
    probability: np.ndarray  # [items], of being drawn
    times_sampled: np.ndarray  # [items]


def section(lines: Sequence[Line], legend: Legend) -> Section:
    """Replays per observation, items held, parameter lag, and the priorities' histogram."""
    actors = [(line.run.actor, line.colour) for line in lines if line.paces]
    learners = [(line.learner, line.colour) for line in lines]
    drawn = [
        chart
        for logs, column, title in (
            (actors, "replays_per_observation", "Replays per observation"),
            (actors, "replay_size", "Items in replay"),
            (learners, "parameter_lag", "Parameter lag, updates"),
        )
        for chart in _over_steps(logs, column, title, legend)
    ]
    found = [(line, stored) for line in lines if (stored := priorities(line)) is not None]
    drawn += _histogram(found, legend)
    if found:
        tail = page.table(_HEADER, (_row(line.label, stored) for line, stored in found))
    else:
        tail = page.paragraph("No checkpoint holds a prioritized replay.")
    body = page.paragraph(_EXPLANATION) + page.key(legend) + page.grid(drawn)
    return Section("Replay", body + tail, drawn)


def priorities(line: Line) -> Priorities | None:
    """What the newest checkpoint holds for an agent; None where it samples without priorities."""
    if (agent := line.made) is None:
        return None
    table = agent.tables[0]
    stored = line.run.replay.get(table.name)
    if stored is None or table.kind != "prioritized":
        return None
    # As Reverb's selector: an item without priority is never drawn, unless none has any.
    scaled = np.where(stored.priority > 0, stored.priority**table.priority_exponent, 0.0)
    if not scaled.any():
        scaled = np.ones_like(scaled)
    return Priorities(stored.priority, scaled / scaled.sum(), stored.times_sampled)


def bins(found: Sequence[Priorities]) -> np.ndarray:
    """Edges `[BINS + 1]`, of equal ratios, around all priorities but 0; none where all are 0."""
    positive = np.concatenate([stored.priority[stored.priority > 0] for stored in found])
    if not len(positive):
        return positive
    low, high = positive.min(), positive.max()
    edges = np.geomspace(low, high if high > low else 2 * low, BINS + 1)
    edges[[0, -1]] = min(edges[0], low), max(edges[-1], high)  # whatever was rounded
    return edges


def outlines(stored: Priorities, edges: np.ndarray, colour: int) -> list[Steps]:
    """Shares of the items, and of the samples, in bins of the priority.

    Items of priority 0 are in no bin, and in the total all the same.
    """
    items = np.histogram(stored.priority, edges)[0] / len(stored.priority)
    samples = np.histogram(stored.priority, edges, weights=stored.probability)[0]
    return [Steps(items, edges, colour), Steps(samples, edges, colour, "--")]


def _histogram(found: Sequence[tuple[Line, Priorities]], legend: Legend) -> list[Chart]:
    edges = bins([stored for _, stored in found]) if found else np.empty(0)
    if not len(edges):
        return []
    steps = [each for line, stored in found for each in outlines(stored, edges, line.colour)]
    figure = histogram(steps, _PRIORITIES, "priority", "share")
    return [charts.of_figure(figure, _PRIORITIES, legend)]


def _over_steps(
    logs: Sequence[tuple[Log, int]], column: str, title: str, legend: Legend
) -> list[Chart]:
    traces = [Trace(binned(*log.defined("actor_steps", column)), colour) for log, colour in logs]
    return charts.of_curves(traces, title, "actor steps", legend)


def _row(label: str, stored: Priorities) -> list[str]:
    priority, probability, times_sampled = stored
    tenth = np.sort(probability)[-max(1, len(probability) // 10) :]
    return [
        label,
        f"{len(priority):,}",
        *map(page.number, np.percentile(priority, (50, 99, 100))),
        f"{tenth.sum():.0%}",
        page.number(float(times_sampled.mean())),
    ]
