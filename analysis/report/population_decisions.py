"""What the members of a population decided."""

import datetime
from collections.abc import Sequence

from analysis.report import page
from analysis.report.page import Section
from analysis.report.population import Members, shown
from analysis.report.population_summary import verdict
from population.decisions import Decision
from population.folder import name_of

NEWEST = 50  # that are shown at once
MOST = 1_000  # that are on the page

_HEADER = (
    *("member", "decision", "time, UTC", "actor steps", "its score", "looked at"),
    *("that one's score", "what it did", "values"),
)


def section(members: Members) -> Section:
    """The newest decisions, and below them those before."""
    if not members.decisions:
        return Section("Decisions", page.paragraph("No member has decided anything yet."))
    rows = [_row(decision) for decision in reversed(members.decisions[-MOST:])]
    earlier = rows[NEWEST:]
    body = page.paragraph("The newest first.") + page.table(_HEADER, rows[:NEWEST])
    if earlier:
        body += page.of_each(len(earlier), "before these", page.table(_HEADER, earlier))
    if len(members.decisions) > MOST:
        body += page.paragraph(
            f"All {len(members.decisions):,} decisions are in {members.folder.listing.name}."
        )
    return Section("Decisions", body)


def _row(decision: Decision) -> list[str]:
    return [
        name_of(decision.member),
        str(decision.number),
        _time(decision.time),
        page.number(decision.actor_steps),
        page.number(decision.score),
        "–" if decision.rival is None else name_of(decision.rival),
        page.number(decision.rival_score),
        verdict(decision),
        changes(decision),
    ]


def changes(decision: Decision) -> str:
    """The values that a decision changed; of a first one, those with which a member begins."""
    found: Sequence[str] = [
        f"{name} {shown(decision.old[name])} → {shown(value)}"
        if name in decision.old
        else f"{name} {shown(value)}"
        for name, value in decision.new.items()
        if name not in decision.old or decision.old[name] != value
    ]
    return ", ".join(found) or "as before"


def _time(seconds: float) -> str:
    try:
        made = datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc)
    except (OverflowError, ValueError, OSError):  # somebody's edit
        return page.number(seconds)
    return made.strftime("%Y-%m-%d %H:%M:%S")
