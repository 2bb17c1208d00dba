"""The rule of evolution, against one that was written a second time."""

import math
from collections import Counter
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import pytest

from population import rule
from population.rule import Verdict

NAN = math.nan


class Numbers(NamedTuple):
    """The numbers of a rule: the paper's, unless others are said."""

    burn_in_frames: int = 20_000_000
    ready_episodes: int = 5_000
    margin: float = 0.05
    mutation_probability: float = 0.33
    mutation_factor: float = 1.2


FIELDS = ("rate", "cost", "kind", "share", "size")
EVOLVING, MUTABLE = ("rate", "cost", "kind", "share"), ("rate", "cost")
LARGEST_RATE = 2.0


def _accepts(values: Mapping[str, Any]) -> bool:
    """Each within its own bounds, and one within the other's."""
    rate, cost = values["rate"], values["cost"]
    return bool(1e-3 <= rate <= LARGEST_RATE and 0 < cost <= rate)


def _twin(
    numbers: Numbers,
    member: int,
    scores: list[float],
    values: list[dict[str, Any]],
    rng: np.random.Generator,
    *,
    normalised: bool,
) -> Verdict:
    """What `rule.decide` should say, in small steps."""
    others = [other for other in range(len(scores)) if other != member]
    rival = others[int(rng.integers(len(others)))]
    own, other = scores[member], scores[rival]
    if other != other:
        better = False
    elif own != own:
        better = True
    elif normalised:
        better = other > own and other - own > numbers.margin
    else:
        greater = abs(own) if abs(own) > abs(other) else abs(other)
        better = other - own > greater * numbers.margin
    found = {name: values[member][name] for name in FIELDS}
    if better:
        mixed = dict(found)
        for name in EVOLVING:
            mixed[name] = values[rival][name]
        if _accepts(mixed):
            found = mixed
        else:
            better = False
    for name in MUTABLE:
        moves, up = rng.random() < numbers.mutation_probability, rng.random() < 0.5
        if moves:
            tried = dict(found)
            if up:
                tried[name] = tried[name] * numbers.mutation_factor
            else:
                tried[name] = tried[name] / numbers.mutation_factor
            if _accepts(tried):
                found = tried
    return Verdict(rival, better, found)


def _score(rng: np.random.Generator) -> float:
    """One that others are often near, equal to, or far from."""
    kind = rng.integers(6)
    if kind == 0:
        return NAN
    if kind == 1:
        return 0.0
    return float(np.round(rng.normal(), 1) * rng.choice([1.0, 1.02, 1.05, 1.1, 100.0]))


def _values(rng: np.random.Generator) -> dict[str, Any]:
    rate = float(rng.uniform(1e-3, LARGEST_RATE))
    return dict(
        rate=rate,
        cost=float(rng.uniform(1e-6, rate)),
        kind=str(rng.choice(["one", "other"])),
        share=float(rng.choice([0.25, 0.5])),
        size=int(rng.choice([8, 16])),
    )


def _decide(
    numbers: Numbers, member: int, scores: list[float], values: list[dict[str, Any]], seed: int
) -> tuple[Verdict, Verdict]:
    """What the rule says, and its twin."""
    normalised = bool(seed % 2)
    rngs = [np.random.default_rng(seed) for _ in range(2)]
    said = rule.decide(
        numbers,
        member,
        scores,
        values,
        EVOLVING,
        MUTABLE,
        _accepts,
        rngs[0],
        normalised=normalised,
    )
    return said, _twin(numbers, member, scores, values, rngs[1], normalised=normalised)


def test_the_rule_says_what_its_twin_says_of_thousands_of_populations() -> None:
    adopted, refused, changed = 0, 0, 0
    for seed in range(3_000):
        rng = np.random.default_rng([1, seed])
        members = int(rng.integers(2, 9))
        scores = [_score(rng) for _ in range(members)]
        values = [_values(rng) for _ in range(members)]
        before = [dict(each) for each in values]
        member = int(rng.integers(members))
        numbers = Numbers(margin=float(rng.choice([0.0, 0.05, 0.5])))
        said, twin = _decide(numbers, member, scores, values, seed)
        assert said == twin
        assert values == before  # they are others' too
        assert said.rival != member
        assert _accepts(said.values)
        assert said.values["size"] == values[member]["size"]  # which does not evolve
        for name in ("kind", "share"):
            assert said.values[name] == values[said.rival if said.adopts else member][name]
        if math.isnan(scores[said.rival]):
            assert not said.adopts
        adopted += said.adopts
        refused += not said.adopts
        changed += said.values["rate"] != values[said.rival if said.adopts else member]["rate"]
    assert min(adopted, refused, changed) > 300  # both sides of each question were reached


@pytest.mark.parametrize(
    ("frames", "episodes", "ready"),
    [
        (20_000_000, 5_000, True),
        (19_999_999, 5_000, False),
        (20_000_000, 4_999, False),
        (0, 0, False),
        (10**12, 0, False),
        (0, 10**9, False),
        (10**12, 10**9, True),
    ],
)
def test_a_member_decides_after_the_burn_in_and_enough_episodes(
    frames: int, episodes: int, ready: bool
) -> None:
    assert rule.is_ready(Numbers(), frames, episodes) is ready


@pytest.mark.parametrize(
    ("own", "rival", "normalised", "better"),
    [
        # Human-normalised, five hundredths are what they are wherever they begin.
        (0.0, 0.051, True, True),
        (0.0, 0.05, True, False),
        (0.5, 0.5625, True, True),
        (0.5, 0.53125, True, False),
        (0.9, 1.0, True, True),
        (-0.2, -0.1, True, True),
        (0.6, 0.5, True, False),
        # Plain returns are compared by a share of the greater.
        (-20.0, -19.0, False, False),
        (-20.0, -18.9, False, True),
        (100.0, 105.0, False, False),
        (100.0, 106.0, False, True),
        (0.0, 1e-9, False, True),
        (-1e-9, 0.0, False, True),
        (0.0, 0.0, False, False),
        (1.0, 0.0, False, False),
        (-1.0, 1.0, False, True),
        (1.0, -1.0, False, False),
        (7.0, 7.0, False, False),
        # Without a score.
        (NAN, -1e9, False, True),
        (NAN, 0.0, True, True),
        (1.0, NAN, True, False),
        (-1e9, NAN, False, False),
        (NAN, NAN, False, False),
        (NAN, NAN, True, False),
    ],
)
def test_a_rival_is_adopted_that_is_better_by_the_margin(
    own: float, rival: float, normalised: bool, better: bool
) -> None:
    assert rule.is_better(rival, own, 0.05, normalised=normalised) is better


@pytest.mark.parametrize("scale", [1e-6, 3.0, 1e6])
def test_other_units_of_plain_returns_change_nothing(scale: float) -> None:
    rng = np.random.default_rng(0)
    for _ in range(500):
        own = rng.normal()
        rival = own + rng.choice([0.02, 0.2]) * rng.normal()
        assert rule.is_better(rival, own, 0.05, normalised=False) == rule.is_better(
            scale * rival, scale * own, 0.05, normalised=False
        )


def test_of_two_members_one_at_most_is_better() -> None:
    rng = np.random.default_rng(0)
    for _ in range(1_000):
        one, other = _score(rng), _score(rng)
        for normalised in (True, False):
            both = [
                rule.is_better(*pair, 0.05, normalised=normalised)
                for pair in ((one, other), (other, one))
            ]
            assert not all(both)


def _verdicts(count: int, scores: list[float], **changes: Any) -> list[Verdict]:
    """What member 2 decides with as many seeds; its rate is 1, the others' are 0.1."""
    values: list[dict[str, Any]] = [
        dict(rate=1.0 if i == 2 else 0.1, cost=0.01, kind="one", share=0.5, size=8)
        for i in range(len(scores))
    ]
    return [
        rule.decide(
            Numbers(**changes),
            2,
            scores,
            values,
            EVOLVING,
            MUTABLE,
            lambda _: True,
            np.random.default_rng(seed),
            normalised=True,
        )
        for seed in range(count)
    ]


def test_every_other_member_is_looked_at_equally_often() -> None:
    count = 12_000
    seen = Counter(verdict.rival for verdict in _verdicts(count, [0.0, NAN, 0.5, 1.0, 0.2]))
    assert set(seen) == {0, 1, 3, 4}
    assert max(abs(number / count - 0.25) for number in seen.values()) < 0.015


@pytest.mark.parametrize("better", [0.0, 1.0])
def test_each_value_is_mutated_by_itself_whether_or_not_anything_was_adopted(
    better: float,
) -> None:
    count = 12_000
    verdicts = _verdicts(count, [better, better, 0.5])
    assert {verdict.adopts for verdict in verdicts} == {better > 0.5}
    begins = 0.1 if better > 0.5 else 1.0
    for name, begin in (("rate", begins), ("cost", 0.01)):
        factors = Counter(round(verdict.values[name] / begin, 6) for verdict in verdicts)
        assert set(factors) == {1.0, 1.2, round(1 / 1.2, 6)}
        assert factors[1.0] / count == pytest.approx(0.67, abs=0.015)
        assert factors[1.2] / count == pytest.approx(0.165, abs=0.012)
    both = sum(v.values["rate"] != begins and v.values["cost"] != 0.01 for v in verdicts)
    assert both / count == pytest.approx(0.33**2, abs=0.01)


@pytest.mark.parametrize(("probability", "changed"), [(0.0, 0), (1.0, 200)])
def test_the_probability_of_a_mutation_is_the_rules(probability: float, changed: int) -> None:
    verdicts = _verdicts(200, [0.0, 0.0, 0.5], mutation_probability=probability)
    assert sum(verdict.values["rate"] != 1.0 for verdict in verdicts) == changed


def test_a_value_walks_up_to_what_its_config_takes_and_no_further() -> None:
    values: dict[str, Any] = dict(rate=1.0, cost=0.01, kind="one", share=0.5, size=8)
    rng, seen = np.random.default_rng(0), []
    for _ in range(2_000):
        verdict = rule.decide(
            Numbers(),
            0,
            [0.0, 0.0],
            [values, values],
            EVOLVING,
            MUTABLE,
            lambda values: 0.5 <= values["rate"] <= 2,
            rng,
            normalised=True,
        )
        values = verdict.values
        seen.append(values["rate"])
    assert 2 / 1.2 < max(seen) <= 2
    assert 0.5 <= min(seen) < 0.5 * 1.2
