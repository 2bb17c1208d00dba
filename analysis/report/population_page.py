"""The page of a population: its members, their scores and values, and whose weights they have."""

import datetime
import math
import pathlib
import shlex
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from agents import fields
from analysis.report import charts
from analysis.report.charts import COLOURS, Trace
from analysis.report.page import Page, duration, number
from analysis.report.population import (
    OTHERS,
    Member,
    Members,
    by_family,
    cut,
    held,
    joined,
    segments,
)
from population.decisions import Decision
from population.folder import name_of
from population.ranges import Range
from population.settings import Population
from recurrent_replay import command
from run_folder import texts

MOST = 50  # members, and decisions, that are shown at once
MOST_DECISIONS = 1_000  # that are on the page

_WIDE = 10.0  # between the least and the largest of what is drawn on a logarithmic axis
_OF_RULE = ("burn_in_frames", "ready_episodes", "margin", "mutation_probability", "mutation_factor")


def page_of(members: Members, output: pathlib.Path | None = None) -> Page:
    """The page of a population, for its own folder or `output`.

    Members that stay apart have no family tree.
    """
    name = members.folder.path.resolve().name
    page = Page(name, output or members.folder.report, members.legend)
    summary(page, members)
    over_steps(page, members)
    values(page, members)
    if members.settings.evolves:
        family_tree(page, members)
    in_the_end(page, members)
    decided(page, members)
    page.section("Commands")
    best = members.ranked[0]
    page.commands(
        [
            "# go on",
            f"{command('population')} --run_dir={shlex.quote(str(members.folder.path))} --resume",
            f"# all about member {best.name}",
            f"{command('report')} --run_dir={_quoted(members, best)}",
        ]
    )
    return page


def _quoted(members: Members, member: Member) -> str:
    """A member's run folder as it is typed."""
    return shlex.quote(str(members.folder.member(member.number).path))


def summary(page: Page, members: Members) -> None:
    """The members, the best first, then what the population is."""
    page.section("Summary")
    page.text(f"The best first, by their {members.score.lower()}.")
    header = ["member", "score", "state", "actor steps", "updates", "time, h:mm"]
    header += members.settings.ranges
    if members.settings.evolves:
        header += ["last decision", "took over", "was taken over", "weights from"]
    taken = Counter(made.rival for made in members.decisions if made.adopted is not None)
    rows = [_row(members, member, taken[member.number]) for member in members.ranked]
    page.table(header, rows[:MOST])
    if rest := rows[MOST:]:
        with page.folded(len(rest), "others"):
            page.table(header, rest)
    if members.settings.evolves and len(members.scored) < len(rows):
        page.text(
            "A score is of the weights that a member has now: who took some over has none until an "
            "episode has ended with them."
        )
    if members.scored:
        best = members.ranked[0]
        page.text(f"This evaluates member {best.name}:")
        page.commands([f"{command('evaluate')} --run_dir={_quoted(members, best)} --episodes=30"])
    else:
        page.text("No member has a score yet.")
    _settings(page, members.settings)


def _row(members: Members, member: Member, taken: int) -> list[str]:
    cells = [
        member.name,
        number(member.score),
        member.state,
        number(member.actor.last("actor_steps")),
        number(member.actor.last("learner_steps")),
        duration(member.actor.last("walltime")),
        *(shown(member.values[name]) if member.values else "–" for name in members.settings.ranges),
    ]
    if not members.settings.evolves:
        return cells
    last = member.decisions[-1] if member.decisions else None
    decision = "–" if last is None or last.rival is None else f"{last.number}: {_verdict(last)}"
    return [*cells, decision, str(len(member.adoptions)), str(taken), name_of(member.ancestor)]


def _verdict(decision: Decision) -> str:
    """The outcome of a decision."""
    if decision.rival is None:
        return "began"
    rival = name_of(decision.rival)
    return f"kept its own, not {rival}'s" if decision.adopted is None else f"took over {rival}'s"


def _settings(page: Page, found: Population) -> None:
    """The settings of a population, with the numbers of its rule where it evolves."""
    left_out = ("sweep", "flags", "overrides", *(() if found.evolves else _OF_RULE))
    page.heading("Settings")
    rows = []
    for name, field in fields.declared(Population).items():
        value = getattr(found, name)
        text = f"{value:,}" if isinstance(value, int) else shown(value)
        if name not in left_out:
            rows.append((name, text, field.meaning))
    page.table(("setting", "value", "what it is"), rows)
    page.heading("Of every member")
    told = [f"--{name}={value}" for name, value in found.flags.items()]
    for agent, given in found.overrides.items():
        told += [f"--{agent}{'.' if agent else ''}{name}={text}" for name, text in given.items()]
    page.commands(told)
    page.heading("Values")
    later = "taken over with weights" if found.evolves else "kept"
    drawn = [
        (name, given.text, later + ", multiplied or divided" * (name in found.mutable))
        for name, given in found.ranges.items()
    ]
    page.table(("field", "drawn from", "then"), drawn)


def shown(value: Any) -> str:
    """A value of a field as text."""
    if isinstance(value, float):
        return number(value, digits=3)
    return ",".join(map(str, value)) if isinstance(value, tuple | list) else str(value)


def over_steps(page: Page, members: Members) -> None:
    """The score of every member, over its actor steps."""
    page.section("Scores")
    pieces = []
    for member in reversed(members.ranked):
        pieces += cut(member.scores, member.stretches, members.colour)
    drawn = charts.curves(joined(pieces), f"{members.score}, by steps", "actor steps")
    if not drawn:
        page.text("No episode has ended yet.")
        return
    page.text(
        "Each line is a member: a point is the mean over the training episodes of a part of its "
        "life, in which each actor has its own exploration."
    )
    said, who = "A colour stands for a member.", "the best ones"
    if members.settings.evolves:
        who = "those from whom the best ones descend"
        said = (
            "A colour stands for a member at the start, and for all weights that descend from that "
            "member's: who takes over another's weights takes over their colour."
        )
    if len(members.colours) < len(members.ranked):
        said += (
            f" There are {len(members.ranked)} members and {len(COLOURS)} colours: {who} have one "
            "each, all others are grey."
        )
    page.text(said)
    page.key()
    page.grid(drawn)


def values(page: Page, members: Members) -> None:
    """A chart for each value that is a number, and a table of those that are not."""
    page.section("Values")
    begun = [member for member in members.ranked if member.decisions]
    if not begun:
        page.text("Nothing has been drawn yet.")
        return
    numbers = [name for name, given in members.settings.ranges.items() if given.mutates]
    chart = _value_over_steps if members.settings.evolves else _score_by_value
    drawn = [figure for name in numbers for figure in chart(members, name)]
    if drawn and members.settings.evolves:
        page.text(
            "Each line is a member: a value holds until its next decision, from which on it is "
            "another's, or was multiplied or divided, or both."
        )
        page.key()
    elif drawn:
        page.text("Each dot is a member: the value that it drew, and the score that it has.")
    page.grid(drawn, members.legend if members.settings.evolves else ())
    if others := [name for name in members.settings.ranges if name not in numbers]:
        rows = [[each.name, *(shown(each.values[name]) for name in others)] for each in begun]
        with page.folded(len(rows), "members' other values"):
            page.table(("member", *others), rows)


def _value_over_steps(members: Members, name: str) -> list[Figure]:
    """Every member's value over its actor steps (Espeholt et al. 2018, Figure E.1)."""
    pieces = []
    for member in reversed(members.ranked):
        pieces += held(member.decisions, name, member.end, members.colour)
    drawn = [value for piece in pieces for value in piece.y.tolist()]
    log = "y" if is_wide(members.settings.ranges[name], drawn) else ""
    return charts.curves(joined(pieces), name, "actor steps", log=log)


def _score_by_value(members: Members, name: str) -> list[Figure]:
    """The scores of a sweep's members by what they drew."""
    drawn = [member.values[name] for member in members.scored]
    y = np.asarray([member.score for member in members.scored])
    dots = Trace(np.asarray(drawn, float), y, style="o")
    log = "x" if is_wide(members.settings.ranges[name], drawn) else ""
    return charts.curves([dots], f"{members.score} against {name}", name, log=log)


def is_wide(given: Range, values: Sequence[float]) -> bool:
    """Tells whether values need a logarithmic axis."""
    finite = [value for value in values if math.isfinite(value)]
    if not finite or min(finite) <= 0:
        return False
    return given.kind == "log" or max(finite) > _WIDE * min(finite)


def family_tree(page: Page, members: Members) -> None:
    """A lane for each member, and a line for each adoption of another's weights."""
    page.section("Family tree")
    lanes = by_family(members.ranked)
    found = segments(members, lanes)
    if not any(member.adoptions for member in lanes):
        page.text("No member has taken over the weights of another yet.")
        return
    page.text(
        "A lane for each member. Those whose weights descend from the same one stand together, the "
        "best on top. A line leads from where weights were to where a member took them over, which "
        "has a dot; what that one had until then ends there."
    )
    page.key()
    names = [member.name for member in lanes]
    page.grid([charts.lanes(names, found, "Family tree", "actor steps")])


def in_the_end(page: Page, members: Members) -> None:
    """The members' present scores; in a sweep also by the values of its grids."""
    page.section("Final scores")
    scored = members.scored
    if not scored:
        page.text("No member has a score yet.")
        return
    missing = len(members.ranked) - len(scored)
    none_yet = f" {missing} of {len(members.ranked)} have none yet." if missing else ""
    page.text("The members in the order of their scores, the best first." + none_yet)
    traces = [_ranks(scored, 0)]
    if members.settings.evolves:  # dots in the colours of their ancestors
        page.key()
        x, y, *_ = traces[0]
        colours = [members.colour(member.ancestor) for member in scored]
        traces = joined([Trace(x[i : i + 1], y[i : i + 1], c) for i, c in enumerate(colours)])
    title = f"{members.score}, the best first"
    legend = members.legend if members.settings.evolves else ()
    page.grid(charts.curves(traces, title, "rank"), legend)
    for name, given in members.settings.ranges.items():
        if given.kind == "grid":
            _by_grid(page, members, name, given.values)


def _ranks(scored: Sequence[Member], colour: int) -> Trace:
    """Members' scores by their ranks among these."""
    ranks = np.arange(1, len(scored) + 1, dtype=float)
    return Trace(ranks, np.asarray([member.score for member in scored]), colour, "o-")


def _by_grid(page: Page, members: Members, name: str, values: Sequence[object]) -> None:
    """A line for each value of a grid, sorted by itself."""
    page.heading(name)
    page.text(
        f"The members by the values of {name}, each value's in the order of their scores: the "
        "higher a line stays, the less it matters what else was drawn."
    )
    most = OTHERS if len(values) > len(COLOURS) else len(values)
    legend = [(f"{name}={shown(value)}", min(i, most)) for i, value in enumerate(values)]
    page.key(legend)
    # JSON has lists for tuples: what is the same is typed the same.
    drawn = {member.number: texts.typed(member.values[name]) for member in members.scored}
    rows = [
        _ranks([m for m in members.scored if drawn[m.number] == texts.typed(value)], colour)
        for value, (_, colour) in zip(values, legend, strict=True)
    ]
    title, x_label = f"{members.score} by {name}", "rank among the members of a value"
    page.grid(charts.curves(rows, title, x_label), legend)


def decided(page: Page, members: Members) -> None:
    """The newest decisions, and folded below them the earlier ones."""
    page.section("Decisions")
    if not members.decisions:
        page.text("No member has decided anything yet.")
        return
    page.text("The newest first.")
    header = ["member", "decision", "time, UTC", "actor steps", "its score", "looked at"]
    header += ["that one's score", "what it did", "values"]
    rows = [
        [
            name_of(made.member),
            str(made.number),
            _time(made.time),
            number(made.actor_steps),
            number(made.score),
            "–" if made.rival is None else name_of(made.rival),
            number(made.rival_score),
            _verdict(made),
            _changes(made),
        ]
        for made in reversed(members.decisions[-MOST_DECISIONS:])
    ]
    page.table(header, rows[:MOST])
    if earlier := rows[MOST:]:
        with page.folded(len(earlier), "before these"):
            page.table(header, earlier)
    if len(members.decisions) > MOST_DECISIONS:
        every = f"All {len(members.decisions):,} decisions"
        page.text(f"{every} are in {members.folder.listing.name}.")


def _changes(decision: Decision) -> str:
    """The values that a decision changed; of a first one, all values."""
    found = []
    for name, value in decision.new.items():
        if name not in decision.old:
            found.append(f"{name} {shown(value)}")
        elif decision.old[name] != value:
            found.append(f"{name} {shown(decision.old[name])} → {shown(value)}")
    return ", ".join(found) or "as before"


def _time(seconds: float) -> str:
    try:
        made = datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc)
    except (OverflowError, ValueError, OSError):  # somebody's edit
        return number(seconds)
    return made.strftime("%Y-%m-%d %H:%M:%S")
