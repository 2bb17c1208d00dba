"""What the members of a population score: over their lives, and in the end, the best first."""

import math
from collections.abc import Sequence

import numpy as np

from analysis.report import charts, page
from analysis.report.charts import Chart, Legend
from analysis.report.curves import Curve
from analysis.report.figures import COLOURS, Trace
from analysis.report.page import Section
from analysis.report.population import OTHERS, Member, Members, shown
from analysis.report.population_curves import cut, traces

_RANK = "rank"
_STEPS_NOTE = (
    "Each line is a member: a point is the mean over the training episodes of a part of its life, "
    "in which each actor has its own exploration."
)
_SORTED_NOTE = "The members in the order of their scores, the best first."
_GRID_NOTE = (
    "The members by the values of {}, each value's in the order of their scores: the higher a "
    "line stays, the less it matters what else was drawn."
)


def section(members: Members) -> Section:
    """The score of every member, over its actor steps."""
    pieces = [
        (members.colour(piece.ancestor), piece)
        for member in reversed(members.ranked)
        for piece in cut(member.scores, member.stretches)
    ]
    title = f"{members.score}, by steps"
    drawn = charts.of_curves(traces(pieces), title, "actor steps", members.legend)
    if not drawn:
        return Section("Scores", page.paragraph("No episode has ended yet."))
    body = page.paragraph(_STEPS_NOTE) + members.key() + page.grid(drawn)
    return Section("Scores", body, drawn)


def in_the_end(members: Members) -> Section:
    """The scores that the members have now; those of a sweep by its grids, too."""
    scored = [member for member in members.ranked if not math.isnan(member.score)]
    if not scored:
        return Section("Final scores", page.paragraph("No member has a score yet."))
    drawn = _ranked(members, scored)
    body = page.paragraph(_SORTED_NOTE + _left_out(members, scored))
    body += (page.key(members.legend) if members.settings.evolves else "") + page.grid(drawn)
    for name, given in members.ranges.items():
        if given.kind == "grid":
            legend = _legend(name, given.values)
            charts_of_grid = _by_value(members, scored, name, given.values, legend)
            body += page.heading(name) + page.paragraph(_GRID_NOTE.format(name))
            body += page.key(legend) + page.grid(charts_of_grid)
            drawn += charts_of_grid
    return Section("Final scores", body, drawn)


def _left_out(members: Members, scored: Sequence[Member]) -> str:
    missing = len(members.ranked) - len(scored)
    return f" {missing} of {len(members.ranked)} have none yet." if missing else ""


def _ranked(members: Members, scored: Sequence[Member]) -> list[Chart]:
    """All in one row: dots in the colours of their ancestors, or a line where nothing evolves."""
    title = f"{members.score}, the best first"
    if not members.settings.evolves:
        return charts.of_curves([_row(scored, 0)], title, _RANK, ())
    found: dict[int, list[tuple[int, float]]] = {}
    for rank, member in enumerate(scored, 1):
        found.setdefault(members.colour(member.ancestor), []).append((rank, member.score))
    dots = [
        Trace(_curve(*np.asarray(found[colour], float).T), colour, "o")
        for colour in sorted(found, reverse=True)
    ]
    return charts.of_curves(dots, title, _RANK, members.legend)


def _by_value(
    members: Members, scored: Sequence[Member], name: str, values: Sequence[object], legend: Legend
) -> list[Chart]:
    """A line for each value of a grid, sorted by itself."""
    rows = [
        _row([member for member in scored if member.values[name] == value], colour)
        for value, (_, colour) in zip(values, legend, strict=True)
    ]
    title = f"{members.score} by {name}"
    return charts.of_curves(rows, title, "rank among the members of a value", legend)


def _legend(name: str, values: Sequence[object]) -> Legend:
    return [
        (f"{name}={shown(value)}", min(place, OTHERS) if len(values) > len(COLOURS) else place)
        for place, value in enumerate(values)
    ]


def _row(scored: Sequence[Member], colour: int) -> Trace:
    ranks = np.arange(1, len(scored) + 1, dtype=float)
    return Trace(_curve(ranks, np.asarray([member.score for member in scored])), colour, "o-")


def _curve(x: np.ndarray, y: np.ndarray) -> Curve:
    return Curve(x, y, y, y)
