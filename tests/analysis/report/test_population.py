"""A population is read from its folder, whatever state its members are in."""

import json
import math
import pathlib
from typing import Any

import pytest

from analysis.report import (
    population,
    population_decisions,
    population_scores,
    population_summary,
    population_tree,
    population_values,
)
from analysis.report.figures import COLOURS
from analysis.report.population import OTHERS
from run_folder.settings import SettingsError
from tests.analysis.report.made_up_population import COST, RATE, Made, evolved
from tests.analysis.report.pages import tables


def _many(path: pathlib.Path, members: int, **given: Any) -> Made:
    """Members of whom the last one is the best, and no two are equal."""
    made = Made(path, members, sweep={RATE: "log:1e-5:1e-2"}, **given)
    made.begin({RATE: [1e-4] * members})
    for member in range(members):
        made.play(member, [member / members] * 10)
    return made


def test_members_are_ranked_by_the_weights_that_they_have(tmp_path: pathlib.Path) -> None:
    evolved(tmp_path / "before")
    path = (tmp_path / "before").rename(tmp_path / "after")
    found = population.load(path)
    assert found.folder.path == path
    assert [member.name for member in found.ranked] == ["02", "01", "00"]
    # What they scored before they took over others' weights does not count.
    assert [member.score for member in found.ranked] == pytest.approx([0.75, 0.0, -0.375])
    assert [member.ancestor for member in found.ranked] == [0, 0, 0]
    best = found.ranked[0]
    assert (best.actor_steps, best.learner_steps, best.walltime) == (40_000, 80, 400)
    assert best.end == 40_000
    assert best.values == {RATE: 1e-4, COST: 0.25}
    # What others took over is found in the log of who made it.
    saved = {member.number: member.saved for member in found.ranked}
    assert saved == {0: {24: 12_000.0}, 1: {30: 15_000.0}, 2: {}}


def test_the_end_of_a_turn_is_not_the_end(tmp_path: pathlib.Path) -> None:
    made = Made(tmp_path, members=6, told={"max_actor_steps": 3_000, "num_actors": 8})
    for member, returns, reason in ((0, [0.0] * 2, "turn"), (1, [0.0] * 3, "limit"), (2, [], "")):
        made.play(member, returns).progress(state="", reason=reason)
    made.play(3, [])
    half = made.play(4, [0.0])
    (half.path / "nodes" / "progress.json").write_text('{"state": "runn')
    found = population.load(tmp_path).ranked
    states = {member.number: member.state for member in found}
    assert states == {
        0: "waits for its turn",
        1: "ended: limit",
        2: "running",
        3: "no node has reported yet",
        4: "no node has reported yet",
        5: "has not begun",
    }


def test_logs_that_were_cut_short_are_read_as_far_as_they_go(tmp_path: pathlib.Path) -> None:
    made = Made(tmp_path)
    logs = [made.play(member, [1.0] * 20).path / "logs" for member in range(3)]
    for name in ("episodes", "actor"):
        text = (logs[0] / f"{name}.csv").read_text()
        (logs[0] / f"{name}.csv").write_text(text[:-3])
        (logs[1] / f"{name}.csv").write_text("actor_st")
        (logs[2] / f"{name}.csv").write_text("")
    best, *others = population.load(tmp_path).ranked
    assert (best.number, best.score, best.actor_steps) == (0, 1.0, 19_000)
    assert [member.number for member in others] == [1, 2]  # who has no score comes last
    assert all(math.isnan(member.score) and member.end == 0 for member in others)
    assert {len(member.scores.x) for member in others} == {0}


def test_few_members_have_a_colour_each_and_of_many_that_stay_apart_the_best(
    tmp_path: pathlib.Path,
) -> None:
    few = _many(tmp_path / "few", len(COLOURS))
    found = population.load(few.folder.path)
    assert sorted(found.colours.values()) == list(range(len(COLOURS)))
    assert found.colour(len(COLOURS) - 1) == 0  # of the best
    assert ("others", OTHERS) not in found.legend
    assert "grey" not in found.key()
    many = _many(tmp_path / "many", 14, evolve="none")
    found = population.load(many.folder.path)
    assert [found.colour(number) for number in (13, 12, 5, 4)] == [0, 1, 8, OTHERS]
    assert "14 members and 10 colours: the best ones have" in found.key()


def test_of_many_those_from_whom_the_best_descend_have_colours(tmp_path: pathlib.Path) -> None:
    made = _many(tmp_path, 14)
    made.decide(12, 5_000, rival=2, adopts=True)
    found = population.load(tmp_path)
    assert [member.number for member in found.ranked[:3]] == [13, 12, 11]
    assert [found.colour(number) for number in (13, 2, 11, 10)] == [0, 1, 2, 3]
    assert len(found.colours) == OTHERS
    # 12's own weights are no more, and 0's are the worst.
    assert (found.colour(12), found.colour(0)) == (OTHERS, OTHERS)
    assert found.legend[1] == ("from 02", 1)
    assert found.legend[-1] == ("others", OTHERS)
    assert "14 members and 10 colours: those from whom the best ones descend have" in found.key()


@pytest.mark.parametrize(
    ("values", "said"),
    [
        (dict(rival=3), "Decision 1 of member 01 .* must name a rival from 0 to 2, got 3"),
        (dict(rival=None), "must name a rival from 0 to 2, got None"),
        (dict(new={RATE: 1e-3}), "must have a value of entropy_cost, got None"),
        (dict(new={RATE: 1e-3, COST: "low"}), "a value of entropy_cost, got 'low'"),
    ],
)
def test_a_decision_of_another_population_is_told_in_a_sentence(
    values: dict[str, object], said: str, tmp_path: pathlib.Path
) -> None:
    path = evolved(tmp_path).path(1, 1)
    path.write_text(json.dumps(json.loads(path.read_text()) | values))
    with pytest.raises(SettingsError, match=said):
        population.load(tmp_path)


@pytest.mark.parametrize(
    ("value", "text"),
    [(1.5e-5, "1.5e−05"), (0.0123456, "0.0123"), (20.0, "20"), (3, "3"), ("vtrace", "vtrace")],
)
def test_values_are_short(value: object, text: str) -> None:
    assert population.shown(value) == text
    assert population.shown((value, value)) == f"{value},{value}"


def test_what_there_is_nothing_of_yet_has_a_sentence_and_no_chart(tmp_path: pathlib.Path) -> None:
    """Of a population that has not begun, and of one in which nobody has played or adopted."""
    made = Made(tmp_path)
    found = population.load(tmp_path)
    assert (len(found.ranked), found.decisions) == (3, [])
    body = population_summary.section(found).body
    assert tables(body)[0][1] == ["00", "–", "has not begun", *["–"] * 6, "0", "0", "00"]
    assert "No member has a score yet." in body
    nothing = {
        population_values.section: "Nothing has been drawn yet.",
        population_decisions.section: "No member has decided anything yet.",
    }
    played = {
        population_scores.section: "No episode has ended yet.",
        population_scores.in_the_end: "No member has a score yet.",
        population_tree.section: "No member has taken over the weights of another yet.",
    }
    for section, said in (nothing | played).items():
        assert said in section(found).body
        assert not section(found).charts
    made.begin({RATE: [1e-4] * 3, COST: [0.5] * 3})
    made.decide(0, 2_000, rival=1)
    made.play(0, [math.nan])
    for section, said in played.items():
        assert said in section(population.load(tmp_path)).body
