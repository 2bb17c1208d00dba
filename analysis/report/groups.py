"""Columns that an agent logs for each member of a group, such as metaparameters for each head."""

from collections.abc import Callable, Sequence

import numpy as np

from agents.entry import Group
from analysis.report import charts, figures, page
from analysis.report.charts import Chart, Legend
from analysis.report.curves import Curve, binned
from analysis.report.figures import COLOURS, Bars, Trace
from analysis.report.page import Section
from analysis.report.run import Line, recent_return
from run_folder.log_reader import Log

# Of the members, where colours tell runs apart: matplotlib's sign, and the word for it.
_STYLES = (("-", "solid"), ("--", "dashed"), (":", "dotted"), ("-.", "dash-dotted"))


def sections(lines: Sequence[Line], legend: Legend) -> list[Section]:
    """A section for each group that an agent has, such as STACX's metaparameters."""
    of_agents = {line.label: line.run.settings.entry(line.agent).groups for line in lines}
    found = {group.title: group for groups in of_agents.values() for group in groups}
    made = (
        _section(group, [line for line in lines if group in of_agents[line.label]], legend)
        for group in found.values()
    )
    return [section for section in made if section is not None]


def _section(group: Group, lines: Sequence[Line], legend: Legend) -> Section | None:
    """A chart for each name, then what the runs came to; None where nothing was logged yet."""
    names = [name for name in group.names if any(_members(line.learner, name) for line in lines)]
    if not names:
        return None
    members = sorted({m for line in lines for name in names for m in _members(line.learner, name)})
    if len(lines) == 1:
        legend = [(f"{group.member} {member}", _colour(member)) for member in members]
    drawn = [chart for name in names for chart in _of_name(name, lines, legend)]
    ablations = _ablations(group, lines)
    rows = [(name, group.names[name]) for name in names]
    body = page.paragraph(group.note) + page.key(legend)
    if len(lines) > 1 and len(members) > 1:
        said = (f"{group.member} {member} {_style(member)[1]}" for member in members)
        body += page.paragraph(f"Lines: {', '.join(said)}.")
    body += page.grid(drawn) + page.table(("column", "what it is"), rows) + page.grid(ablations)
    return Section(group.title, body, [*drawn, *ablations])


def _of_name(name: str, lines: Sequence[Line], legend: Legend) -> list[Chart]:
    traces = []
    for line in lines:
        for member in _members(line.learner, name):
            curve = _read(f"{name}/{member}")(line.learner)
            if len(lines) == 1:
                traces.append(Trace(curve, _colour(member), band=True))
            else:
                traces.append(Trace(curve, line.colour, _style(member)[0]))
    return charts.of_curves(traces, name, "actor steps", legend)


def _colour(member: int) -> int:
    return (member - 1) % len(COLOURS)


def _style(member: int) -> tuple[str, str]:
    return _STYLES[(member - 1) % len(_STYLES)]


def _members(log: Log, name: str) -> list[int]:
    """Of which members a log has a column of that name."""
    found = (column.partition("/") for column in log.numbers)
    return sorted(int(member) for of, _, member in found if of == name and member.isdecimal())


def _read(column: str) -> Callable[[Log], Curve]:
    return lambda log: binned(*log.defined("actor_steps", column))


def _ablations(group: Group, lines: Sequence[Line]) -> list[Chart]:
    """A bar for each choice of names that the runs made: the mean of their recent returns."""
    returns: dict[str, list[float]] = {}
    for line in lines:
        returned = recent_return(line.run)
        if np.isfinite(returned):
            returns.setdefault(_chosen(group, line), []).append(returned)
    if len(returns) < 2:
        return []
    labels = sorted(returns, key=lambda label: (label.count(","), label))
    bars = [Bars([float(np.mean(returns[label])) for label in labels], colour=0)]
    title = f"Return by {group.field}"
    figure = figures.bars(labels, bars, title, "recent training return")
    return [charts.of_figure(figure, title, ())]


def _chosen(group: Group, line: Line) -> str:
    chosen = getattr(line.run.settings.configs[line.agent], group.field)
    return "{" + ", ".join(chosen) + "}"
