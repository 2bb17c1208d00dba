"""A population at a glance: its members, its settings, and what can be done with it."""

import math
import shlex
from collections import Counter
from collections.abc import Sequence

from agents import fields
from analysis.report import page
from analysis.report.page import Section
from analysis.report.population import Member, Members, shown
from population.decisions import Decision
from population.folder import name_of
from population.settings import Population
from recurrent_replay import command

MOST = 50  # members that are shown at once

_RULE = ("burn_in_frames", "ready_episodes", "margin", "mutation_probability", "mutation_factor")
_APART = ("sweep", "train")
_COUNTS = ("member", "score", "state", "actor steps", "updates", "time, h:mm")
_EVOLUTION = ("last decision", "took over", "was taken over", "weights from")
_NO_SCORE = (
    "A score is of the weights that a member has now: who took some over has none until an episode "
    "has ended with them."
)


def section(members: Members) -> Section:
    """The members, the best first, then what the population is."""
    evolves = members.settings.evolves
    header = [*_COUNTS, *members.ranges, *(_EVOLUTION if evolves else ())]
    taken = Counter(made.rival for made in members.decisions if made.adopted is not None)
    rows = [_row(members, member, taken[member.number]) for member in members.ranked]
    body = page.paragraph(f"The best first, by their {members.score.lower()}.")
    body += page.table(header, rows[:MOST])
    if rest := rows[MOST:]:
        body += page.of_each(len(rest), "others", page.table(header, rest))
    if evolves and any(math.isnan(member.score) for member in members.ranked):
        body += page.paragraph(_NO_SCORE)
    body += _best(members) + _settings(members) + _drawn(members)
    return Section("Summary", body)


def commands(members: Members) -> Section:
    """How to go on, and to look at some of the members more closely."""
    folder = members.folder
    best = members.ranked[0]
    run = shlex.quote(str(folder.member(best.number).path))
    typed = [
        "# go on",
        f"{command('population')} --run_dir={shlex.quote(str(folder.path))} --resume",
        f"# all about member {best.name}",
        f"{command('report')} --run_dir={run}",
    ]
    return Section("Commands", page.commands(typed))


def _row(members: Members, member: Member, taken: int) -> list[str]:
    values = member.values
    cells = [
        member.name,
        page.number(member.score),
        member.state,
        page.number(member.actor_steps),
        page.number(member.learner_steps),
        page.duration(member.walltime),
        *(shown(values[name]) if name in values else "–" for name in members.ranges),
    ]
    if members.settings.evolves:
        took = sum(decision.adopted is not None for decision in member.decisions)
        cells += [last(member.decisions), str(took), str(taken), name_of(member.ancestor)]
    return cells


def last(made: Sequence[Decision]) -> str:
    """What a member decided last."""
    if not made or made[-1].rival is None:
        return "–"
    return f"{made[-1].number}: {verdict(made[-1])}"


def verdict(decision: Decision) -> str:
    """What a decision came to."""
    if decision.rival is None:
        return "began"
    rival = name_of(decision.rival)
    return f"kept its own, not {rival}'s" if decision.adopted is None else f"took over {rival}'s"


def _best(members: Members) -> str:
    """How to evaluate the best member."""
    best = members.ranked[0]
    if math.isnan(best.score):
        return page.paragraph("No member has a score yet.")
    run = shlex.quote(str(members.folder.member(best.number).path))
    typed = f"{command('evaluate')} --run_dir={run} --episodes=30"
    return page.paragraph(f"This evaluates member {best.name}:") + page.commands([typed])


def _settings(members: Members) -> str:
    """What the population is, with the numbers of its rule where it evolves."""
    found = members.settings
    left_out = _APART if found.evolves else (*_APART, *_RULE)
    rows = [
        (name, _text(getattr(found, name)), field.meaning)
        for name, field in fields.declared(Population).items()
        if name not in left_out
    ]
    table = page.table(("setting", "value", "what it is"), rows)
    told = [f"--{name}={value}" for name, value in found.train.get("values", {}).items()]
    told += [
        f"--{agent}{'.' if agent else ''}{name}={value}"
        for agent, given in found.train.get("fields", {}).items()
        for name, value in given.items()
    ]
    return page.heading("Settings") + table + page.heading("Of every member") + page.commands(told)


def _drawn(members: Members) -> str:
    """Where values come from, and what becomes of them."""
    found = members.settings
    mutable = found.mutable
    later = "taken over with weights" if found.evolves else "kept"
    rows = [
        (name, given.text, f"{later}, multiplied or divided" if name in mutable else later)
        for name, given in members.ranges.items()
    ]
    return page.heading("Values") + page.table(("field", "drawn from", "then"), rows)


def _text(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) else shown(value)
