"""The values of a population's members: how they evolved, or what each of them came to."""

import math
from collections.abc import Sequence

import numpy as np

from analysis.report import charts, page
from analysis.report.charts import Chart
from analysis.report.curves import Curve
from analysis.report.figures import Trace
from analysis.report.page import Section
from analysis.report.population import Member, Members, shown
from analysis.report.population_curves import Piece, steps, traces
from population.ranges import Range

_WIDE = 10.0  # between the least and the largest of what is drawn on a logarithmic axis
_EVOLVED_NOTE = (
    "Each line is a member: a value holds until its next decision, from which on it is another's, "
    "or was multiplied or divided, or both."
)
_SWEPT_NOTE = "Each dot is a member: the value that it drew, and the score that it has."


def section(members: Members) -> Section:
    """A chart for each value that is a number, and a table of those that are not."""
    numbers = [name for name, given in members.ranges.items() if given.mutates]
    if not any(member.decisions for member in members.ranked):
        return Section("Values", page.paragraph("Nothing has been drawn yet."))
    chart = _over_steps if members.settings.evolves else _against_score
    drawn = [found for name in numbers for found in chart(members, name, members.ranges[name])]
    body = ""
    if drawn:
        evolves = members.settings.evolves
        body += page.paragraph(_EVOLVED_NOTE if evolves else _SWEPT_NOTE)
        body += (page.key(members.legend) if evolves else "") + page.grid(drawn)
    others = [name for name in members.ranges if name not in numbers]
    if others:
        body += _table(members.ranked, others)
    return Section("Values", body, drawn)


def is_wide(given: Range, values: Sequence[float]) -> bool:
    """Whether values are to be seen on a logarithmic axis."""
    finite = [value for value in values if math.isfinite(value)]
    if not finite or min(finite) <= 0:
        return False
    return given.kind == "log" or max(finite) > _WIDE * min(finite)


def _over_steps(members: Members, name: str, given: Range) -> list[Chart]:
    """Every member's value over its actor steps (Espeholt et al. 2018, Figure E.1)."""
    pieces: list[tuple[int, Piece]] = []
    for member in reversed(members.ranked):
        held = steps(member.decisions, member.stretches, name, member.end)
        pieces += [(members.colour(piece.ancestor), piece) for piece in held]
    is_log = is_wide(given, [value for _, piece in pieces for value in piece.y.tolist()])
    log = "y" if is_log else ""
    return charts.of_curves(traces(pieces), name, "actor steps", members.legend, log=log)


def _against_score(members: Members, name: str, given: Range) -> list[Chart]:
    """The scores of a sweep's members by what they drew."""
    scored = [member for member in members.ranked if not math.isnan(member.score)]
    values = [member.values[name] for member in scored]
    x, y = np.asarray(values, float), np.asarray([member.score for member in scored])
    dots = Trace(Curve(x, y, y, y), 0, "o")
    title = f"{members.score} against {name}"
    return charts.of_curves([dots], title, name, (), log="x" if is_wide(given, values) else "")


def _table(ranked: Sequence[Member], names: Sequence[str]) -> str:
    """What is no number, of each member."""
    rows = [
        [member.name, *(shown(member.values[name]) for name in names)]
        for member in ranked
        if member.decisions
    ]
    return page.of_each(len(rows), "members' other values", page.table(("member", *names), rows))
