"""The family tree of a population: who took over whose weights, and when."""

from collections.abc import Mapping, Sequence

import numpy as np

from analysis.report import charts, lanes, page
from analysis.report.lanes import Link, Span
from analysis.report.page import Section
from analysis.report.population import Member, Members

_TITLE = "Family tree"
_NOTE = (
    "A lane for each member. Those whose weights descend from the same one stand together, the "
    "best on top. A line leads from where weights were to where a member took them over, which has "
    "a dot; what that one had until then ends there."
)


def section(members: Members) -> Section:
    """Lanes of all members, and the adoptions between them."""
    shown = by_family(members.ranked)
    places = {member.number: place for place, member in enumerate(shown)}
    found = links(members, places)
    if not found:
        said = "No member has taken over the weights of another yet."
        return Section(_TITLE, page.paragraph(said))
    spans = [
        Span(place, begin, end, colour)
        for place, member in enumerate(shown)
        for begin, end, colour in _parts(members, member)
    ]
    names = [member.name for member in shown]
    figure = lanes.figure(names, spans, found, _TITLE, "actor steps")
    drawn = [charts.of_figure(figure, _TITLE, members.legend)]
    body = page.paragraph(_NOTE) + page.key(members.legend) + page.grid(drawn)
    return Section(_TITLE, body, drawn)


def by_family(ranked: Sequence[Member]) -> list[Member]:
    """Members with those of the same ancestor together, the family of the best member first."""
    families: dict[int, list[Member]] = {}
    for member in ranked:
        families.setdefault(member.ancestor, []).append(member)
    return [member for family in families.values() for member in family]


def links(members: Members, places: Mapping[int, int]) -> list[Link]:
    """Every adoption, from the rival's lane to the adopter's.

    Args:
      members: the population.
      places: of each member's lane.
    """
    by_number = {member.number: member for member in members.ranked}
    found = []
    for member in members.ranked:
        adoptions = [decision for decision in member.decisions if decision.adopted is not None]
        for decision, stretch in zip(adoptions, member.stretches[1:], strict=True):
            assert decision.rival is not None
            assert decision.adopted is not None
            rival = by_number[decision.rival]
            link = Link(
                from_lane=places[rival.number],
                from_x=_saved(rival, decision.adopted, decision.rival_learner_step),
                to_lane=places[member.number],
                to_x=decision.actor_steps,
                colour=members.colour(stretch.ancestor),
            )
            found.append(link)
    return found


def _saved(rival: Member, number: int, learner_step: int | None) -> float:
    """Actor steps of a rival at an update; it is after one of its decisions, before the next."""
    steps = [decision.actor_steps for decision in rival.decisions]
    least = steps[min(number, len(steps) - 1)] if steps else 0
    most = steps[number + 1] if number + 1 < len(steps) else max(rival.end, least)
    known = rival.saved.get(learner_step, least) if learner_step is not None else least
    return float(np.clip(known, least, most))


def _parts(members: Members, member: Member) -> list[tuple[float, float, int]]:
    """Where a lane begins to have a colour, where it ends, and the colour."""
    begins = [float(stretch.actor_steps) for stretch in member.stretches]
    ends = [*begins[1:], member.end]
    colours = [members.colour(stretch.ancestor) for stretch in member.stretches]
    return list(zip(begins, ends, colours, strict=True))
