"""Where first values come from: what can be typed, what is refused, and how it is spread."""

import math
from collections import Counter
from typing import Any

import numpy as np
import pytest

from agents import fields
from agents.impala.config import Config
from population import ranges
from population.ranges import Range

DECLARED = fields.declared(Config)


@pytest.mark.parametrize(
    ("name", "text", "kind", "values", "mutates"),
    [
        ("learning_rate", "log:5e-6:5e-3", "log", (5e-6, 5e-3), True),
        ("final_learning_rate", "uniform:0:1e-3", "uniform", (0.0, 1e-3), True),
        ("rho_bar", "choice:1,inf", "choice", (1.0, math.inf), True),
        ("rmsprop_epsilon", "grid:0.1,0.01", "grid", (0.1, 0.01), True),
        ("correction", "grid:vtrace,none", "grid", ("vtrace", "none"), False),
        ("batch_size", "choice:8,16,32", "choice", (8, 16, 32), False),
        ("hidden_sizes", "choice:64,128", "choice", ((64,), (128,)), False),
        ("max_gradient_norm", "choice:none,40", "choice", (None, 40.0), False),
    ],
)
def test_what_a_text_stands_for(
    name: str, text: str, kind: str, values: tuple[Any, ...], mutates: bool
) -> None:
    found = ranges.parse(name, text, DECLARED)
    assert found == Range(kind, values, text)
    assert [type(value) for value in found.values] == [type(value) for value in values]
    assert found.mutates is mutates


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("lerning_rate", "log:1e-5:1e-3", "'lerning_rate' is no field here. Did you mean 'learn"),
        ("learning_rate", "normal:0:1", "got 'normal:0:1'."),
        ("learning_rate", "log:1e-5", "log:<least>:<most>, got 'log:1e-5'."),
        ("learning_rate", "uniform:1e-5,1e-3", "must be of type float, got '1e-5,1e-3'."),
        ("learning_rate", "log:1e-3:1e-3", "which is empty."),
        ("final_learning_rate", "log:0:1e-3", "must be positive to be drawn log-uniformly"),
        ("learning_rate", "log:0:1e-3", "must be a number from 1e-15 to 1e+15, got 0.0 in"),
        ("discount", "uniform:0.9:1.1", "must be a number from 0 to 1, got 1.1 in 'uniform:0."),
        ("rho_bar", "uniform:1:inf", "cannot be drawn from an interval, got 'uniform:1:inf': use"),
        ("learning_rate", "choice:0.1,1e-1", "names a value twice: 'choice:0.1,1e-1'."),
        ("correction", "choice:vtrace,vtracy", "must be one of vtrace, one_step, epsilon, none"),
        ("batch_size", "uniform:8:32", "cannot be drawn from an interval, got 'uniform:8:32': use"),
    ],
)
def test_what_cannot_be_is_refused_in_a_sentence(name: str, text: str, said: str) -> None:
    with pytest.raises(ValueError, match=r"[.?]$") as error:
        ranges.parse(name, text, DECLARED)
    assert said in str(error.value)


def _parsed(**texts: str) -> dict[str, Range]:
    return {name: ranges.parse(name, text, DECLARED) for name, text in texts.items()}


def _distance(drawn: np.ndarray) -> float:
    """The greatest between a sample's distribution and the uniform one on [0, 1]."""
    ranks = (np.arange(len(drawn)) + 0.5) / len(drawn)
    return float(np.abs(np.sort(drawn) - ranks).max())


def test_intervals_are_covered_evenly_or_on_a_logarithmic_scale() -> None:
    found = _parsed(learning_rate="log:5e-6:5e-3", max_gradient_norm="uniform:10:100")
    drawn = [list(ranges.draw(found, member, 0).values()) for member in range(2_000)]
    log, uniform = np.asarray(drawn).T
    assert _distance((np.log10(log) - np.log10(5e-6)) / 3) < 0.03
    assert _distance((uniform - 10) / 90) < 0.03
    assert _distance((log - 5e-6) / (5e-3 - 5e-6)) > 0.3  # which tells the two apart
    assert 5e-6 <= log.min() < 5.2e-6
    assert 4.8e-3 < log.max() <= 5e-3
    assert 10 <= uniform.min() < 10.4
    assert 99.6 < uniform.max() <= 100


@pytest.mark.parametrize("drawn", [0.0, 1.0])
def test_rounding_leads_beyond_no_end(drawn: float, monkeypatch: pytest.MonkeyPatch) -> None:
    class Extreme:
        def uniform(self, least: float, most: float) -> float:
            return least + drawn * (most - least)

    monkeypatch.setattr(np.random, "default_rng", lambda *_: Extreme())
    for text in ("log:5e-6:5e-3", "log:3e-7:0.7", "log:1e-15:1e15", "uniform:0.1:0.3"):
        found = ranges.parse("learning_rate", text, DECLARED)
        (value,) = ranges.draw({"learning_rate": found}, 0, 0).values()
        assert found.values[0] <= value <= found.values[1]
        assert value == pytest.approx(found.values[int(drawn)])


def test_choices_are_equally_likely() -> None:
    count, found = 4_000, _parsed(rmsprop_epsilon="choice:1e-1,1e-3,1e-5,1e-7")
    seen = Counter(ranges.draw(found, member, 0)["rmsprop_epsilon"] for member in range(count))
    assert set(seen) == {1e-1, 1e-3, 1e-5, 1e-7}
    assert max(abs(number / count - 0.25) for number in seen.values()) < 0.02


def test_a_grid_is_covered_and_each_of_its_cells_is_tried_with_the_same_draws() -> None:
    found = _parsed(
        learning_rate="log:1e-5:1e-3",
        correction="grid:vtrace,one_step,none",
        entropy_cost="choice:0.1,0.01,0.001",
        replay_fraction="grid:0,0.25,0.5",
    )
    assert ranges.cells(found) == 9
    assert ranges.cells({}) == 1
    drawn = [ranges.draw(found, member, seed=7) for member in range(36)]
    assert all(list(each) == list(found) for each in drawn)
    cells = Counter((each["correction"], each["replay_fraction"]) for each in drawn)
    assert set(cells.values()) == {4}
    assert len(cells) == 9
    others = [(each["learning_rate"], each["entropy_cost"]) for each in drawn]
    for sample in range(4):
        assert len(set(others[9 * sample : 9 * sample + 9])) == 1
    assert len(set(others)) == 4


def test_a_draw_follows_from_seed_member_and_field() -> None:
    found = _parsed(learning_rate="log:1e-5:1e-3", entropy_cost="log:1e-5:1e-3")
    assert ranges.draw(found, 3, 5) == ranges.draw(found, 3, 5)
    drawn = [ranges.draw(found, member, seed) for member in range(5) for seed in range(5)]
    values = [value for each in drawn for value in each.values()]
    assert len(set(values)) == len(values)
    assert ranges.draw(found, 0, 2**63 - 1)  # the largest seed
