"""Lines of descent: whose first weights each member's weights come from.

Every member begins with weights of its own. Who takes over another's descends from then on from
whom that one descended from, at the decision whose values it took with the weights.
"""

from collections.abc import Sequence
from typing import NamedTuple

from population.decisions import Decision

_Key = tuple[int, int]  # a member and the number of its decision


class Stretch(NamedTuple):
    """A part of a member's life in which its weights descend from one member's.

    Attributes:
      actor_steps: of the member, from which on they do.
      ancestor: the member that began with the weights from which these descend.
    """

    actor_steps: int
    ancestor: int


def trace(made: Sequence[Decision], members: int) -> list[list[Stretch]]:
    """Each member's stretches: the first is its own, and each adoption begins another.

    An adoption names the rival's decision, so clocks of several hosts need not agree. A folder that
    is read while members decide may lack that decision: then the newest of the rival's that is
    known stands for it.

    `made` are each member's decisions, all from number 0 on; an adoption's rival is a member.
    """
    ancestors = _ancestors(made)
    found = [[Stretch(0, member)] for member in range(members)]
    for decision in sorted(made, key=_key):
        if decision.adopted is not None:
            found[decision.member].append(Stretch(decision.actor_steps, ancestors[_key(decision)]))
    return found


def _ancestors(made: Sequence[Decision]) -> dict[_Key, int]:
    """The member whose first weights a member's descend from after each decision."""
    found: dict[_Key, int] = {}
    waiting = list(made)
    while waiting:
        left = []
        for decision in waiting:
            before = _before(decision)
            if before is None or before in found:
                found[_key(decision)] = decision.member if before is None else found[before]
            else:
                left.append(decision)
        if len(left) == len(waiting):  # the decisions that these follow from are not there
            first = left.pop(0)
            member, _ = _before(first) or _key(first)
            known = [key for key in found if key[0] == member]
            found[_key(first)] = found[max(known)] if known else member
        waiting = left
    return found


def _before(decision: Decision) -> _Key | None:
    """The decision after which the weights were what they are after this one; None of a first."""
    if decision.adopted is not None:
        assert decision.rival is not None
        return decision.rival, decision.adopted
    return None if decision.number == 0 else (decision.member, decision.number - 1)


def _key(decision: Decision) -> _Key:
    return decision.member, decision.number
