"""Whose first weights a member's descend from, by what was decided."""

import random

import pytest

from population.ancestry import trace
from population.decisions import Decision
from tests.population.populations import decision_of


def _decision(
    member: int, number: int, rival: int | None = None, adopted: int | None = None
) -> Decision:
    """A decision at 100 actor steps for each that was made before."""
    return decision_of(member, number, rival=rival, adopted=adopted)


def test_an_adoption_takes_whom_the_rival_descended_from_then() -> None:
    made = [
        *(_decision(member, 0) for member in range(4)),
        _decision(1, 1, rival=0, adopted=0),  # 1 descends from 0
        _decision(2, 1, rival=1, adopted=1),  # and so does 2, who takes over 1's
        _decision(1, 2, rival=3, adopted=0),  # 1 leaves the family; 2 does not
        _decision(3, 1, rival=1, adopted=1),  # 3 takes what 1 had before it left
        _decision(0, 1, rival=2),
        _decision(2, 2, rival=0, adopted=1),  # the same ancestor again: scores count from here on
    ]
    assert trace(made, 4) == [
        [(0, 0)],
        [(0, 1), (100, 0), (200, 3)],
        [(0, 2), (100, 0), (200, 0)],
        [(0, 3), (100, 0)],
    ]


def _history(rng: random.Random, members: int) -> list[Decision]:
    """Decisions as a population may make them, in order."""
    made = [_decision(member, 0) for member in range(members)]
    newest = [0] * members
    for _ in range(60):
        member = rng.randrange(members)
        rival = rng.choice([other for other in range(members) if other != member])
        newest[member] += 1
        adopted = newest[rival] if rng.random() < 0.5 else None
        made.append(_decision(member, newest[member], rival, adopted))
    return made


@pytest.mark.parametrize("seed", range(5))
def test_clocks_need_not_agree(seed: int) -> None:
    rng = random.Random(seed)
    made = _history(rng, members=5)
    # The naive way: what each has now, changed by one decision after the other.
    now, naive = list(range(5)), [[(0, member)] for member in range(5)]
    for decision in made:
        if decision.adopted is not None and decision.rival is not None:
            now[decision.member] = now[decision.rival]
            naive[decision.member].append((decision.actor_steps, now[decision.member]))
    assert trace(made, 5) == naive
    assert len({ancestor for own in naive for _, ancestor in own}) > 1
    rng.shuffle(made)
    assert trace(made, 5) == naive


def test_for_a_decision_that_is_not_there_the_rivals_newest_stands() -> None:
    """A folder is read while members decide."""
    made = [
        *(_decision(member, 0) for member in range(3)),
        _decision(0, 1, rival=2, adopted=0),
        _decision(1, 1, rival=0, adopted=2),  # not read: 0 had decided once then
        _decision(1, 2, rival=0),
    ]
    assert trace(made, 3)[1] == [(0, 1), (100, 2)]
    assert trace([_decision(1, 1, rival=0, adopted=3)], 2)[1] == [(0, 1), (100, 0)]


def test_decisions_that_follow_from_each_other_end_somewhere() -> None:
    """No population makes them; somebody's edit may."""
    made = [
        *(_decision(member, 0) for member in range(3)),
        _decision(0, 1, rival=1, adopted=1),
        _decision(1, 1, rival=0, adopted=1),
        _decision(2, 1, rival=2, adopted=1),
    ]
    assert trace(made, 3) == [
        [(0, 0), (100, 1)],
        [(0, 1), (100, 1)],
        [(0, 2), (100, 2)],
    ]
