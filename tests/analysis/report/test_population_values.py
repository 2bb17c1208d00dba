"""Values over the members' lives; of a sweep, what each of them came to."""

import math
import pathlib
from typing import Any
from unittest import mock

import numpy as np
import pytest

from analysis.report import charts, population, population_values
from analysis.report.charts import Chart
from analysis.report.figures import Trace
from analysis.report.page import Section
from population.ranges import Range
from tests.analysis.report.made_up_population import COST, RATE, Made, evolved
from tests.analysis.report.pages import tables


def _drawn(path: pathlib.Path) -> tuple[dict[str, tuple[list[Trace], str]], Section]:
    """Every figure's traces and logarithmic axes, without drawing any, and the section."""
    found: dict[str, tuple[list[Trace], str]] = {}

    def record(traces: list[Trace], title: str, *_: object, log: str = "") -> list[Chart]:
        found[title] = list(traces), log
        return [Chart(title, "", b"")]

    members = population.load(path)
    with mock.patch.object(charts, "of_curves", record):
        return found, population_values.section(members)


def test_each_value_holds_until_the_next_decision(tmp_path: pathlib.Path) -> None:
    evolved(tmp_path)
    drawn, section = _drawn(tmp_path)
    assert list(drawn) == [RATE, COST]
    traces, log = drawn[RATE]
    assert log == "y"
    assert drawn[COST][1] == ""  # from 0.2 to 0.8, and drawn evenly
    (mine,) = (trace.curve for trace in traces if trace.colour == 1)
    np.testing.assert_equal(mine.x, [0, 0, 10_000, math.nan])
    np.testing.assert_equal(mine.mean, [1e-3, 1e-3, 1e-3, math.nan])
    # From its decision on it is drawn as of member 0, up to the last of its steps.
    (taken,) = (trace.curve for trace in traces if trace.colour == 0)
    places = np.flatnonzero((taken.x == 10_000) & (taken.mean == 1e-3))
    (place,) = places
    assert taken.x[place : place + 3].tolist() == [10_000, 10_000, 40_000]
    assert taken.mean[place : place + 3].tolist() == [1e-3, 1e-4, 1e-4]
    assert "from 00" in section.body


@pytest.mark.parametrize(
    ("kind", "values", "wide"),
    [
        ("log", [1.0, 1.1], True),
        ("uniform", [1.0, 9.0], False),
        ("choice", [1.0, 11.0], True),
        ("uniform", [0.0, 11.0], False),
        ("uniform", [-5.0, -1.0], False),
        ("log", [], False),
        ("log", [math.nan, math.inf, 2.0], True),
    ],
)
def test_what_differs_by_much_is_seen_on_a_logarithmic_axis(
    kind: str, values: list[float], wide: bool
) -> None:
    assert population_values.is_wide(Range(kind, (), ""), values) == wide


def test_what_is_no_number_is_a_table(tmp_path: pathlib.Path) -> None:
    sweep = {RATE: "log:1e-5:1e-2", "batch_size": "choice:8,16", "correction": "choice:vtrace,none"}
    made = Made(tmp_path, 3, sweep)
    given: dict[str, Any] = dict(batch_size=[8, 16, 8], correction=["none", "vtrace", "none"])
    made.begin({RATE: [1e-4] * 3, **given})
    made.play(1, [0.5])
    drawn, section = _drawn(tmp_path)
    assert list(drawn) == [RATE]
    assert tables(section.body) == [
        [
            ["member", "batch_size", "correction"],
            ["01", "16", "vtrace"],
            ["00", "8", "none"],
            ["02", "8", "none"],
        ]
    ]


def test_a_sweeps_scores_are_drawn_by_what_was_drawn(tmp_path: pathlib.Path) -> None:
    made = Made(tmp_path, 3, evolve="none")
    made.begin({RATE: [1e-4, 1e-3, 1e-2], COST: [0.2, 0.4, 0.8]})
    made.play(0, [0.5])
    made.play(2, [0.75])
    drawn, section = _drawn(tmp_path)
    (dots,), log = drawn[f"Return against {RATE}"]
    assert (dots.style, log) == ("o", "x")
    assert (dots.curve.x.tolist(), dots.curve.mean.tolist()) == ([1e-2, 1e-4], [0.75, 0.5])
    assert "from 00" not in section.body
