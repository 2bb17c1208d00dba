"""The rule of evolution: when a member decides, whom it follows, and what becomes of its values."""

import dataclasses
import math
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

from population import rule
from population.rule import Verdict
from population.settings import Population
from tests.population.populations import settings_of

NAN = math.nan

RATE, COST = "learning_rate", "entropy_cost"
MUTABLE = (RATE, COST)
EVOLVING = (*MUTABLE, "correction", "length")
SWEEP = dict(
    learning_rate="log:1e-3:2",
    entropy_cost="log:1e-6:2",
    correction="choice:vtrace,none",
    length="choice:8,16",
    batch_size="choice:8,16",
)
PAPERS = settings_of(  # the rest by default
    env="atari:pong",
    sweep=SWEEP,
    evolve=",".join(EVOLVING),
    burn_in_frames=20_000_000,
    ready_episodes=5_000,
)


def _accepts(values: Mapping[str, Any]) -> bool:
    """Each within its own bounds, one within the other, and one within what does not evolve."""
    rate, cost, size = values[RATE], values[COST], values["batch_size"]
    return bool(1e-3 <= rate <= 16 / size and 0 < cost <= rate)


def _score(rng: np.random.Generator) -> float:
    """One that others are often near, equal to, or far from."""
    kind = rng.integers(6)
    if kind == 0:
        return NAN
    if kind == 1:
        return 0.0
    return float(np.round(rng.normal(), 1) * rng.choice([1.0, 1.02, 1.05, 1.1, 100.0]))


def _values(rng: np.random.Generator) -> dict[str, Any]:
    size = int(rng.choice([8, 16]))
    rate = float(rng.uniform(1e-3, 16 / size))
    return dict(
        learning_rate=rate,
        entropy_cost=float(rng.uniform(1e-6, rate)),
        correction=str(rng.choice(["vtrace", "none"])),
        length=int(rng.choice([8, 16])),
        batch_size=size,
    )


@pytest.mark.parametrize(
    ("given", "actor_steps", "episodes", "until"),
    [
        # Of four frames each.
        (dict(), 5_000_000, 5_000, ""),
        (dict(), 4_999_999, 5_001, "burn-in, 19,999,996 of 20,000,000 frames"),
        (dict(), 5_000_000, 4_999, "after 1 episodes"),
        (dict(), 10**12, 0, "after 5,000 episodes"),
        (dict(), 0, 10**9, "burn-in, 0 of 20,000,000 frames"),
        (dict(env="catch"), 20_000_000, 5_000, ""),
        (dict(env="catch"), 19_999_999, 5_000, "burn-in, 19,999,999 of 20,000,000 frames"),
        (dict(evolve="none"), 10**9, 10**9, "never"),
    ],
)
def test_a_member_decides_after_the_burn_in_and_enough_episodes(
    given: dict[str, Any], actor_steps: int, episodes: int, until: str
) -> None:
    population = dataclasses.replace(PAPERS, **given)
    assert rule.until_decision(population, actor_steps, episodes) == until


def test_one_that_must_adopt_looks_at_one_that_has_a_score() -> None:
    scores = [NAN, NAN, 3.0, NAN, 1.0, NAN]
    values = [dict(learning_rate=0.1 * (1 + n)) for n in range(6)]
    population = dataclasses.replace(PAPERS, sweep={RATE: SWEEP[RATE]}, evolve="all")
    rivals = Counter(
        (verdict.rival, verdict.adopts)
        for number in range(1, 100)
        for verdict in [
            rule.decide(population, 0, number, scores, values, lambda _: True, must_adopt=True)
        ]
    )
    assert set(rivals) == {(2, True), (4, True)}
    nobody = rule.decide(population, 0, 1, [NAN] * 6, values, lambda _: True, must_adopt=True)
    assert (nobody.rival != 0, nobody.adopts) == (True, False)


@pytest.mark.parametrize(
    ("own", "rival", "normalised", "better"),
    [
        # Human-normalised, five hundredths are what they are wherever they begin.
        (0.0, 0.051, True, True),
        (0.0, 0.05, True, False),
        (0.5, 0.5625, True, True),
        (0.6, 0.5, True, False),
        # Plain returns are compared by a share of the greater.
        (-20.0, -19.0, False, False),
        (-20.0, -18.9, False, True),
        (100.0, 105.0, False, False),
        (100.0, 106.0, False, True),
        (0.0, 1e-9, False, True),
        (0.0, 0.0, False, False),
        (-1.0, 1.0, False, True),
        # Without a score.
        (NAN, -1e9, False, True),
        (1.0, NAN, True, False),
        (NAN, NAN, False, False),
    ],
)
def test_a_rival_is_adopted_that_is_better_by_the_margin(
    own: float, rival: float, normalised: bool, better: bool
) -> None:
    assert rule.is_better(rival, own, 0.05, normalised=normalised) is better


def _verdict(
    scores: list[float],
    values: list[dict[str, Any]],
    number: int,
    accepts: Callable[[Mapping[str, Any]], bool] = lambda _: True,
    population: Population = PAPERS,
) -> Verdict:
    """The first member's decision, by human-normalised scores."""
    return rule.decide(population, 0, number, scores, values, accepts)


def test_of_thousands_of_populations_each_verdict_is_one_of_the_rules() -> None:
    """A member is what it was or what its rival is; then each value is as it was, or mutated."""
    adopted, refused, changed = 0, 0, 0
    for seed in range(1_500):
        rng = np.random.default_rng([1, seed])
        scores = [_score(rng) for _ in range(int(rng.integers(2, 9)))]
        values = [_values(rng) for _ in scores]
        before = [dict(each) for each in values]
        said = _verdict(scores, values, seed, _accepts)
        assert values == before  # they are others' too
        assert said.rival != 0
        own, rival = values[0], values[said.rival]
        taken = own | {name: rival[name] for name in EVOLVING}
        better = rule.is_better(scores[said.rival], scores[0], 0.05, normalised=True)
        assert said.adopts is (better and _accepts(taken))
        begun = taken if said.adopts else own
        assert said.values | dict.fromkeys(MUTABLE) == begun | dict.fromkeys(MUTABLE)
        for name in MUTABLE:
            assert said.values[name] in [begun[name] * by for by in (1, 1.2)] + [begun[name] / 1.2]
        assert _accepts(said.values)
        adopted += said.adopts
        refused += better and not said.adopts
        changed += said.values[RATE] != begun[RATE]
    assert min(adopted, refused, changed) > 50  # both sides of each question were reached


def test_every_other_member_is_looked_at_equally_often() -> None:
    count, scores = 6_000, [0.5, 0.0, NAN, 1.0, 0.2]
    values = [dict.fromkeys(SWEEP, 1.0)] * len(scores)
    for member in (0, 2):
        seen = Counter(
            rule.decide(PAPERS, member, number, scores, values, lambda _: True).rival
            for number in range(count)
        )
        assert set(seen) == set(range(5)) - {member}
        assert max(abs(number / count - 0.25) for number in seen.values()) < 0.02


@pytest.mark.parametrize(
    ("better", "probability", "factor"), [(False, 0.33, 1.2), (True, 0.33, 1.2), (True, 0.6, 2.0)]
)
def test_each_value_is_mutated_by_itself_whether_or_not_anything_was_adopted(
    better: bool, probability: float, factor: float
) -> None:
    count, scores = 6_000, [0.5, 1.0 if better else 0.0]
    same = dict(entropy_cost=0.01, correction="none", length=8, batch_size=8)
    values: list[dict[str, Any]] = [dict(same, learning_rate=rate) for rate in (1.0, 0.1)]
    population = dataclasses.replace(
        PAPERS, mutation_probability=probability, mutation_factor=factor
    )
    verdicts = [_verdict(scores, values, i, population=population) for i in range(count)]
    assert {verdict.adopts for verdict in verdicts} == {better}
    begins = {RATE: 0.1 if better else 1.0, COST: 0.01}
    for name, begin in begins.items():
        factors = Counter(round(verdict.values[name] / begin, 6) for verdict in verdicts)
        assert set(factors) == {1.0, factor, round(1 / factor, 6)}
        assert factors[1.0] / count == pytest.approx(1 - probability, abs=0.02)
        assert factors[factor] / count == pytest.approx(probability / 2, abs=0.016)
    both = sum(all(v.values[name] != begins[name] for name in begins) for v in verdicts)
    assert both / count == pytest.approx(probability**2, abs=0.016)


def test_a_value_walks_up_to_what_its_config_takes_and_no_further() -> None:
    values, seen = dict.fromkeys(SWEEP, 1.0), []
    for number in range(2_000):
        verdict = _verdict([0, 0], [values] * 2, number, lambda found: 0.5 <= found[RATE] <= 2)
        values = verdict.values
        seen.append(values[RATE])
    assert 2 / 1.2 < max(seen) <= 2
    assert 0.5 <= min(seen) < 0.5 * 1.2
