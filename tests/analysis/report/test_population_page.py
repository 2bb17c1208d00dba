"""The page of a population, whatever state its members are in."""

import json
import math
import pathlib
from typing import Any

import numpy as np
import pytest

from analysis.report import population, population_page
from population.ranges import Range
from tests.analysis.report import pages
from tests.analysis.report.made_up_population import COST, RATE, Made, evolved
from tests.analysis.report.pages import Section

STEPS, BEST_FIRST = "Return, by steps", "Return, the best first"


def _sections(path: pathlib.Path) -> dict[str, Section]:
    return pages.sections(population_page.page_of(population.load(path)))


def test_the_best_member_comes_first_with_all_that_is_known_of_it(tmp_path: pathlib.Path) -> None:
    made = evolved(tmp_path / "a b")
    summary = _sections(tmp_path / "a b")["Summary"]
    header, *rows = summary.tables[0]
    assert header == [
        *("member", "score", "state", "actor steps", "updates", "time, h:mm", RATE, COST),
        *("last decision", "took over", "was taken over", "weights from"),
    ]
    counts = ["no node has reported yet", "40,000", "80", "0:06"]
    assert rows == [
        ["02", "0.75", *counts, "0.0001", "0.25", "1: took over 01's", "1", "0", "00"],
        ["01", "0", *counts, "0.0001", "0.25", "1: took over 00's", "1", "1", "00"],
        ["00", "−0.375", *counts, "0.00012", "0.2", "1: kept its own, not 02's", "0", "1", "00"],
    ]
    best = f"--run_dir='{tmp_path}/a b/members/02'"
    assert f"python -m launch.evaluate {best} --episodes=30" in summary.text
    assert "who took some over has none" not in summary.text
    made.decide(2, 40_000, rival=0, adopts=True)
    sections = _sections(tmp_path / "a b")
    rows = sections["Summary"].tables[0][1:]
    assert [row[:2] for row in rows] == [["01", "0"], ["00", "−0.375"], ["02", "–"]]
    assert "who took some over has none" in sections["Summary"].text
    commands = sections["Commands"].text
    assert f"python -m launch.population --run_dir='{tmp_path}/a b' --resume" in commands
    assert f"python -m launch.report --run_dir='{tmp_path}/a b/members/01'" in commands


def test_of_many_members_those_that_are_not_among_the_best_are_folded(
    tmp_path: pathlib.Path,
) -> None:
    made = Made(tmp_path, 70)
    made.play(69, [0.5])
    summary = _sections(tmp_path)["Summary"]
    first, second = summary.tables[:2]
    assert [row[0] for row in first[1:4]] == ["69", "00", "01"]
    assert (len(first), len(second)) == (51, 21)
    assert "All 20 others" in summary.text


def test_settings_are_told_with_what_they_mean(tmp_path: pathlib.Path) -> None:
    sweep = {RATE: "log:1e-5:1e-2", "correction": "choice:vtrace,none"}
    Made(tmp_path / "all", 2, sweep, told={"num_actors": 8}, burn_in_frames=3_000)
    summary = _sections(tmp_path / "all")["Summary"]
    assert "--num_actors=8" in summary.text
    settings = {row[0]: row[1:] for row in summary.tables[1]}
    assert settings["burn_in_frames"][0] == "3,000"
    means = "By how much another's score must be higher to be adopted."
    assert settings["margin"] == ["0.05", means]
    assert settings["env"][0] == "catch"
    assert not {"sweep", "flags", "overrides"} & set(settings)
    assert summary.tables[2][1:] == [
        [RATE, "log:1e-5:1e-2", "taken over with weights, multiplied or divided"],
        ["correction", "choice:vtrace,none", "taken over with weights"],
    ]
    # A sweep has no rule and no ancestors.
    made = Made(tmp_path / "none", 2, evolve="none")
    made.begin({RATE: [1e-4, 1e-3], COST: [0.2, 0.4]})
    made.play(0, [math.nan])
    summary = _sections(tmp_path / "none")["Summary"]
    assert summary.tables[0][0][-1] == COST
    assert not {"margin", "burn_in_frames"} & {row[0] for row in summary.tables[1]}
    assert summary.tables[2][1] == [RATE, "log:1e-5:1e-2", "kept"]


def test_what_there_is_nothing_of_yet_has_a_sentence_and_no_chart(tmp_path: pathlib.Path) -> None:
    """Of a population that has not begun, and of one in which nobody has played or adopted."""
    made = Made(tmp_path)
    sections = _sections(tmp_path)
    row = sections["Summary"].tables[0][1]
    assert row == ["00", "–", "has not begun", *["–"] * 6, "0", "0", "00"]
    nothing = {
        "Values": "Nothing has been drawn yet.",
        "Decisions": "No member has decided anything yet.",
    }
    played = {
        "Summary": "No member has a score yet.",
        "Scores": "No episode has ended yet.",
        "Final scores": "No member has a score yet.",
        "Family tree": "No member has taken over the weights of another yet.",
    }
    for title, said in (nothing | played).items():
        assert said in sections[title].text
        assert not sections[title].figures
    made.begin({RATE: [1e-4] * 3, COST: [0.5] * 3})
    made.decide(0, 2_000, rival=1)
    made.play(0, [math.nan])
    sections = _sections(tmp_path)
    for title, said in played.items():
        assert said in sections[title].text


def test_lines_and_dots_take_the_colour_of_whom_the_weights_descend_from(
    tmp_path: pathlib.Path,
) -> None:
    made = evolved(tmp_path)
    sections = _sections(tmp_path)
    own = {line.colour: line for line in sections["Scores"].lines[STEPS]}
    # 1's own weights were played for 10,000 steps, 2's own for 20,000.
    assert np.nanmax(own[1].x) == 10_000
    assert np.nanmax(own[2].x) == 20_000
    assert np.nanmin(own[0].x) < 10_000
    assert np.nanmax(own[0].x) > 30_000
    assert np.count_nonzero(np.isnan(own[0].x)) == 3  # pieces of three members
    assert "from 00" in sections["Scores"].text
    final = sections["Final scores"]
    (only,) = final.lines[BEST_FIRST]
    assert (only.colour, only.style, only.x.tolist()) == (0, "o", [1, 2, 3])
    assert only.y.tolist() == pytest.approx([0.75, 0, -0.375])
    assert "none yet" not in final.text
    made.decide(1, 50_000, rival=2, adopts=True)  # and has not played since
    final = _sections(tmp_path)["Final scores"]
    assert final.lines[BEST_FIRST][0].x.tolist() == [1, 2]
    assert "1 of 3 have none yet." in final.text


def test_what_colours_mean_is_told_where_there_are_too_few(tmp_path: pathlib.Path) -> None:
    for count, evolve, said in (
        (10, "all", ""),
        (14, "all", "14 members and 10 colours: those from whom the best ones descend have"),
        (14, "none", "14 members and 10 colours: the best ones have"),
    ):
        made = Made(tmp_path / f"{count}-{evolve}", count, evolve=evolve)
        made.play(0, [0.5] * 10)
        text = _sections(made.folder.path)["Scores"].text
        assert said in text
        assert ("grey" in text) == bool(said)


def test_each_value_holds_until_the_next_decision(tmp_path: pathlib.Path) -> None:
    evolved(tmp_path)
    found = _sections(tmp_path)["Values"]
    assert found.figures == [RATE, COST]
    assert found.scales == {RATE: "log", COST: "linear"}  # from 0.2 to 0.8, and drawn evenly
    (mine,) = (line for line in found.lines[RATE] if line.colour == 1)
    np.testing.assert_equal(mine.x, [0, 0, 10_000, math.nan])
    np.testing.assert_equal(mine.y, [1e-3, 1e-3, 1e-3, math.nan])
    # From its decision on it is drawn as of member 0, up to the last of its steps.
    (taken,) = (line for line in found.lines[RATE] if line.colour == 0)
    (place,) = np.flatnonzero((taken.x == 10_000) & (taken.y == 1e-3))
    assert taken.x[place : place + 3].tolist() == [10_000, 10_000, 40_000]
    assert taken.y[place : place + 3].tolist() == [1e-3, 1e-4, 1e-4]


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
    assert population_page.is_wide(Range(kind, (), ""), values) == wide


def test_what_is_no_number_is_a_table(tmp_path: pathlib.Path) -> None:
    sweep = {RATE: "log:1e-5:1e-2", "batch_size": "choice:8,16", "correction": "choice:vtrace,none"}
    made = Made(tmp_path, 3, sweep)
    given: dict[str, Any] = dict(batch_size=[8, 16, 8], correction=["none", "vtrace", "none"])
    made.begin({RATE: [1e-4] * 3, **given})
    made.play(1, [0.5])
    found = _sections(tmp_path)["Values"]
    assert found.figures == [RATE]
    assert found.tables == [
        [
            ["member", "batch_size", "correction"],
            ["01", "16", "vtrace"],
            ["00", "8", "none"],
            ["02", "8", "none"],
        ]
    ]


@pytest.mark.parametrize(
    ("value", "text"),
    [(1.5e-5, "1.5e−05"), (0.0123456, "0.0123"), (20.0, "20"), (3, "3"), ("vtrace", "vtrace")],
)
def test_values_are_short(value: object, text: str) -> None:
    assert population_page.shown(value) == text
    assert population_page.shown((value, value)) == f"{value},{value}"


def test_a_sweep_is_sorted_as_a_whole_and_by_the_values_of_its_grids(
    tmp_path: pathlib.Path,
) -> None:
    sweep = {"correction": "grid:vtrace,none", RATE: "log:1e-5:1e-2"}
    made = Made(tmp_path, 6, sweep, evolve="none")
    rates = [1e-5, 1e-4, 1e-3, 1e-2, 2e-3, 3e-3]
    made.begin({"correction": ["vtrace", "none"] * 3, RATE: rates})
    for member, returned in enumerate((0.1, 0.9, 0.7, 0.3, 0.5)):
        made.play(member, [returned] * 3)
    sections = _sections(tmp_path)
    final = sections["Final scores"]
    (line,) = final.lines[BEST_FIRST]
    assert line.y.tolist() == pytest.approx([0.9, 0.7, 0.5, 0.3, 0.1])
    vtrace, none = final.lines["Return by correction"]
    assert vtrace.y.tolist() == pytest.approx([0.7, 0.5, 0.1])
    assert none.y.tolist() == pytest.approx([0.9, 0.3])
    assert vtrace.x.tolist() == [1, 2, 3]
    assert [vtrace.style, vtrace.colour, none.colour] == ["o-", 0, 1]
    assert "correction=vtrace" in final.text
    # Its values are drawn against scores.
    title = f"Return against {RATE}"
    (dots,) = sections["Values"].lines[title]
    assert (dots.style, sections["Values"].scales[title]) == ("o", "linear")
    assert dots.x.tolist() == [1e-4, 1e-3, 2e-3, 1e-2, 1e-5]
    assert "Family tree" not in sections


def test_more_values_than_colours_share_the_grey_one(tmp_path: pathlib.Path) -> None:
    sizes = list(range(1, 13))
    sweep = {"batch_size": f"grid:{','.join(map(str, sizes))}"}
    made = Made(tmp_path, 12, sweep, evolve="none")
    made.begin({"batch_size": sizes})
    for member in range(12):
        made.play(member, [float(member)])
    drawn = _sections(tmp_path)["Final scores"].lines["Return by batch_size"]
    assert [line.colour for line in drawn] == [*range(9), 9, 9, 9]


def test_a_grid_may_be_of_fields_that_hold_several_values(tmp_path: pathlib.Path) -> None:
    made = Made(tmp_path, 2, {"hidden_sizes": "grid:16,32"}, evolve="none")
    made.begin({"hidden_sizes": [(16,), (32,)]})  # of which the files of decisions make lists
    for member in range(2):
        made.play(member, [float(member)])
    small, large = _sections(tmp_path)["Final scores"].lines["Return by hidden_sizes"]
    assert (small.y.tolist(), large.y.tolist()) == ([0.0], [1.0])


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
    assert _sections(tmp_path)["Scores"].figures == [f"{title}, by steps"]


def test_the_newest_decision_comes_first(tmp_path: pathlib.Path) -> None:
    made = evolved(tmp_path)
    (table,) = _sections(tmp_path)["Decisions"].tables
    assert [row[:2] for row in table[1:]] == [
        *(["02", "1"], ["00", "1"], ["01", "1"]),
        *(["02", "0"], ["01", "0"], ["00", "0"]),
    ]
    kept, took, began = table[2], table[3], table[-1]
    assert kept[3:] == [
        *("15,000", "0.5", "02", "−1", "kept its own, not 02's"),
        "learning_rate 0.0001 → 0.00012",
    ]
    assert took[2:8] == ["2023-11-14 22:13:24", "10,000", "−0.5", "00", "0.5", "took over 00's"]
    assert took[8] == "learning_rate 0.001 → 0.0001, entropy_cost 0.4 → 0.25"
    assert began[3:] == [*("0", "–", "–", "–", "began"), "learning_rate 0.0001, entropy_cost 0.2"]
    made.decide(0, 40_000, rival=1)
    path = made.path(0, 2)
    path.write_text(json.dumps(json.loads(path.read_text()) | {"time": 1e15}))  # no clock has it
    (table,) = _sections(tmp_path)["Decisions"].tables
    assert table[1][2] == "1,000,000,000,000,000"
    assert table[1][-2:] == ["kept its own, not 01's", "as before"]


def test_older_ones_are_folded_and_the_oldest_of_many_left_out(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = Made(tmp_path, 2)
    made.begin({RATE: [1e-4] * 2, COST: [0.5] * 2})
    for number in range(80):
        made.decide(0, 1_000 * number, rival=1)
    found = _sections(tmp_path)["Decisions"]
    newest, earlier = found.tables
    assert [row[1] for row in (newest[1], newest[-1], earlier[1])] == ["80", "31", "30"]
    assert len(earlier) == 1 + 82 - 50
    assert "All 32 before these" in found.text
    assert "population.jsonl" not in found.text
    monkeypatch.setattr(population_page, "MOST_DECISIONS", 60)
    found = _sections(tmp_path)["Decisions"]
    assert [len(table) for table in found.tables] == [51, 11]
    assert "All 82 decisions are in population.jsonl." in found.text
