"""Scores over the members' lives, and in the end."""

import pathlib
from unittest import mock

import numpy as np
import pytest

from analysis.report import charts, population, population_scores
from analysis.report.charts import Chart
from analysis.report.figures import Trace
from analysis.report.page import Section
from tests.analysis.report.made_up_population import COST, RATE, Made, evolved

STEPS, BEST_FIRST = "Return, by steps", "Return, the best first"


def _drawn(path: pathlib.Path, of_section: str) -> tuple[dict[str, list[Trace]], Section]:
    """Every figure's traces, without drawing any, and the section."""
    found: dict[str, list[Trace]] = {}

    def record(traces: list[Trace], title: str, *_: object, **__: object) -> list[Chart]:
        found[title] = list(traces)
        return [Chart(title, "", b"")]

    members = population.load(path)
    with mock.patch.object(charts, "of_curves", record):
        return found, getattr(population_scores, of_section)(members)


def test_a_line_takes_the_colour_of_whom_the_weights_descend_from(tmp_path: pathlib.Path) -> None:
    evolved(tmp_path)
    drawn, section = _drawn(tmp_path, "section")
    colours = {trace.colour: trace.curve for trace in drawn[STEPS]}
    # 1's own weights were played for 10,000 steps, 2's own for 20,000.
    assert np.nanmax(colours[1].x) == 10_000
    assert np.nanmax(colours[2].x) == 20_000
    assert np.nanmin(colours[0].x) < 10_000
    assert np.nanmax(colours[0].x) > 30_000
    assert np.count_nonzero(np.isnan(colours[0].x)) == 3  # pieces of three members
    assert "from 00" in section.body


def test_final_scores_are_dots_in_the_colours_of_ancestors(tmp_path: pathlib.Path) -> None:
    made = evolved(tmp_path)
    drawn, section = _drawn(tmp_path, "in_the_end")
    (only,) = drawn[BEST_FIRST]
    assert (only.colour, only.style, only.curve.x.tolist()) == (0, "o", [1, 2, 3])
    assert only.curve.mean.tolist() == pytest.approx([0.75, 0, -0.375])
    assert "none yet" not in section.body
    made.decide(1, 50_000, rival=2, adopts=True)  # and has not played since
    drawn, section = _drawn(tmp_path, "in_the_end")
    assert drawn[BEST_FIRST][0].curve.x.tolist() == [1, 2]
    assert "1 of 3 have none yet." in section.body


def test_a_sweep_is_sorted_as_a_whole_and_by_the_values_of_its_grids(
    tmp_path: pathlib.Path,
) -> None:
    made = Made(tmp_path, 6, {"correction": "grid:vtrace,none"}, evolve="none")
    made.begin({"correction": ["vtrace", "none"] * 3})
    for member, returned in enumerate((0.1, 0.9, 0.7, 0.3, 0.5)):
        made.play(member, [returned] * 3)
    drawn, section = _drawn(tmp_path, "in_the_end")
    (line,) = drawn[BEST_FIRST]
    assert line.curve.mean.tolist() == pytest.approx([0.9, 0.7, 0.5, 0.3, 0.1])
    vtrace, none = drawn["Return by correction"]
    assert vtrace.curve.mean.tolist() == pytest.approx([0.7, 0.5, 0.1])
    assert none.curve.mean.tolist() == pytest.approx([0.9, 0.3])
    assert vtrace.curve.x.tolist() == [1, 2, 3]
    assert [vtrace.style, vtrace.colour, none.colour] == ["o-", 0, 1]
    assert "correction=vtrace" in section.body
    assert len(section.charts) == 2


def test_more_values_than_colours_share_the_grey_one(tmp_path: pathlib.Path) -> None:
    sizes = list(range(1, 13))
    sweep = {"batch_size": f"grid:{','.join(map(str, sizes))}"}
    made = Made(tmp_path, 12, sweep, evolve="none")
    made.begin({"batch_size": sizes})
    for member in range(12):
        made.play(member, [float(member)])
    drawn, _ = _drawn(tmp_path, "in_the_end")
    colours = [trace.colour for trace in drawn["Return by batch_size"]]
    assert colours == [*range(9), 9, 9, 9]


@pytest.mark.parametrize(
    ("env", "title"),
    [
        ("catch", "Return"),
        ("catch,catch:large_rewards", "Mean return"),
        ("atari:pong", "Mean capped human-normalised score"),
    ],
)
def test_the_figures_say_what_a_score_is(env: str, title: str, tmp_path: pathlib.Path) -> None:
    made = Made(tmp_path, env=env)
    made.begin({RATE: [1e-4] * 3, COST: [0.5] * 3})
    made.play(0, [0.5] * 30)
    assert list(_drawn(tmp_path, "section")[0]) == [f"{title}, by steps"]
