"""A population at a glance."""

import math
import pathlib

from analysis.report import population, population_summary
from tests.analysis.report.made_up_population import COST, RATE, Made, evolved
from tests.analysis.report.pages import tables


def test_the_best_member_comes_first_with_all_that_is_known_of_it(tmp_path: pathlib.Path) -> None:
    made = evolved(tmp_path)
    body = population_summary.section(population.load(tmp_path)).body
    header, *rows = tables(body)[0]
    assert header[:6] == ["member", "score", "state", "actor steps", "updates", "time, h:mm"]
    assert header[6:] == [
        RATE,
        COST,
        "last decision",
        "took over",
        "was taken over",
        "weights from",
    ]
    state = "no node has reported yet"
    counts = [state, "40,000", "80", "0:06"]
    assert rows == [
        ["02", "0.75", *counts, "0.0001", "0.25", "1: took over 01's", "1", "0", "00"],
        ["01", "0", *counts, "0.0001", "0.25", "1: took over 00's", "1", "1", "00"],
        ["00", "−0.375", *counts, "0.00012", "0.2", "1: kept its own, not 02's", "0", "1", "00"],
    ]
    assert f"python -m launch.evaluate --run_dir={tmp_path}/members/02 --episodes=30" in body
    assert "who took some over has none" not in body
    made.decide(2, 40_000, rival=0, adopts=True)
    body = population_summary.section(population.load(tmp_path)).body
    rows = tables(body)[0][1:]
    assert [row[:2] for row in rows] == [["01", "0"], ["00", "−0.375"], ["02", "–"]]
    assert "who took some over has none" in body


def test_of_many_members_those_that_are_not_among_the_best_are_folded(
    tmp_path: pathlib.Path,
) -> None:
    made = Made(tmp_path, 70)
    made.play(69, [0.5])
    body = population_summary.section(population.load(tmp_path)).body
    first, second = tables(body)[:2]
    assert [row[0] for row in first[1:4]] == ["69", "00", "01"]
    assert (len(first), len(second)) == (51, 21)
    assert "<details><summary>All 20 others</summary>" in body
    assert body.index("<details>") > body.index(">48<")


def test_settings_are_told_with_what_they_mean(tmp_path: pathlib.Path) -> None:
    sweep = {RATE: "log:1e-5:1e-2", "correction": "choice:vtrace,none"}
    Made(tmp_path, 2, sweep, told={"num_actors": 8}, burn_in_frames=3_000)
    body = population_summary.section(population.load(tmp_path)).body
    assert "<code>--num_actors=8</code>" in body
    found = tables(body)
    settings = {row[0]: row[1:] for row in found[1]}
    assert settings["burn_in_frames"][0] == "3,000"
    assert settings["margin"] == [
        "0.05",
        "By how much another's score must be higher to be adopted.",
    ]
    assert settings["env"][0] == "catch"
    assert not {"sweep", "train"} & set(settings)
    assert found[2][1:] == [
        [RATE, "log:1e-5:1e-2", "taken over with weights, multiplied or divided"],
        ["correction", "choice:vtrace,none", "taken over with weights"],
    ]


def test_a_sweep_has_no_rule_and_no_ancestors(tmp_path: pathlib.Path) -> None:
    made = Made(tmp_path, 2, evolve="none")
    made.begin({RATE: [1e-4, 1e-3], COST: [0.2, 0.4]})
    made.play(0, [math.nan])
    body = population_summary.section(population.load(tmp_path)).body
    found = tables(body)
    assert found[0][0][-1] == COST
    assert not [row for row in found[1] if row[0] in ("margin", "burn_in_frames")]
    assert found[2][1] == [RATE, "log:1e-5:1e-2", "kept"]
    assert "weights from" not in body


def test_commands_name_the_folder_that_was_given(tmp_path: pathlib.Path) -> None:
    folder = tmp_path / "a b"
    evolved(folder)
    body = population_summary.commands(population.load(folder)).body
    assert f"python -m launch.population --run_dir=&#x27;{folder}&#x27; --resume" in body
    assert f"python -m launch.report --run_dir=&#x27;{folder}/members/02&#x27;" in body
