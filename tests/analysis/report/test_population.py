"""A population is read from its folder, whatever state its members are in."""

import json
import math
import pathlib
import shutil
from typing import Any

import pytest

from analysis.report import population
from analysis.report.figures import COLOURS
from analysis.report.population import OTHERS
from run_folder.settings import SettingsError
from tests.analysis.report.made_up_population import COST, RATE, Made, evolved


def _many(path: pathlib.Path, members: int, **given: Any) -> Made:
    """Members of whom the last one is the best, and no two are equal."""
    made = Made(path, members, sweep={RATE: "log:1e-5:1e-2"}, **given)
    made.begin({RATE: [1e-4] * members})
    for member in range(members):
        made.play(member, [member / members] * 10)
    return made


def test_members_are_ranked_by_the_weights_that_they_have(tmp_path: pathlib.Path) -> None:
    evolved(tmp_path)
    found = population.load(tmp_path)
    assert [member.name for member in found.ranked] == ["02", "01", "00"]
    # What they scored before they took over others' weights does not count.
    assert [member.score for member in found.ranked] == pytest.approx([0.75, 0.0, -0.375])
    assert [member.ancestor for member in found.ranked] == [0, 0, 0]
    best = found.ranked[0]
    assert (best.actor_steps, best.learner_steps, best.walltime) == (40_000, 80, 400)
    assert best.end == 40_000
    assert best.values == {RATE: 1e-4, "entropy_cost": 0.25}


def test_what_others_took_over_is_found_in_the_log_of_who_made_it(tmp_path: pathlib.Path) -> None:
    evolved(tmp_path)
    saved = {member.number: member.saved for member in population.load(tmp_path).ranked}
    assert saved == {0: {24: 12_000.0}, 1: {30: 15_000.0}, 2: {}}


def test_a_population_that_has_not_begun_is_one(tmp_path: pathlib.Path) -> None:
    Made(tmp_path, members=12)
    found = population.load(tmp_path)
    assert len(found.ranked) == 12
    assert {member.state for member in found.ranked} == {"has not begun"}
    assert all(math.isnan(member.score) and member.end == 0 for member in found.ranked)
    assert {len(member.scores.x) for member in found.ranked} == {0}
    assert found.decisions == []


def test_who_has_no_score_comes_last(tmp_path: pathlib.Path) -> None:
    made = Made(tmp_path, members=4)
    made.begin({RATE: [1e-4] * 4, COST: [0.5] * 4})
    made.play(1, [-1.0])
    made.play(2, [math.nan])
    made.play(3, [0.5])
    found = population.load(tmp_path)
    assert [member.number for member in found.ranked] == [3, 1, 0, 2]
    assert [member.score for member in found.ranked[:2]] == [0.5, -1.0]
    assert [math.isnan(member.score) for member in found.ranked[2:]] == [True, True]


def test_the_end_of_a_turn_is_not_the_end(tmp_path: pathlib.Path) -> None:
    made = Made(tmp_path, members=6, told={"max_actor_steps": 3_000, "num_actors": 8})
    for member, returns, reason in ((0, [0.0] * 2, "turn"), (1, [0.0] * 3, "limit"), (2, [], "")):
        made.play(member, returns).progress(state="", reason=reason)
    made.play(3, [])
    half = made.play(4, [0.0])
    (half.path / "nodes" / "progress.json").write_text('{"state": "runn')
    odd = made.play(5, [0.0])
    (odd.path / "nodes" / "progress.json").write_text("[]")
    found = population.load(tmp_path).ranked
    states = {member.number: member.state for member in found}
    assert states == {
        0: "waits for its turn",
        1: "ended: limit",
        2: "running",
        3: "no node has reported yet",
        4: "no node has reported yet",
        5: "no node has reported yet",
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
    assert all(math.isnan(member.score) for member in others)


def test_few_members_have_a_colour_each(tmp_path: pathlib.Path) -> None:
    _many(tmp_path, len(COLOURS))
    found = population.load(tmp_path)
    assert sorted(found.colours.values()) == list(range(len(COLOURS)))
    assert found.colour(len(COLOURS) - 1) == 0  # of the best
    assert ("others", OTHERS) not in found.legend
    assert "grey" not in found.key()


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


def test_of_many_that_stay_apart_the_best_have_colours(tmp_path: pathlib.Path) -> None:
    _many(tmp_path, 14, evolve="none")
    found = population.load(tmp_path)
    assert [found.colour(number) for number in (13, 12, 5, 4)] == [0, 1, 8, OTHERS]
    assert "14 members and 10 colours: the best ones have" in found.key()


def test_a_moved_folder_is_read_where_it_is(tmp_path: pathlib.Path) -> None:
    evolved(tmp_path / "before")
    shutil.move(tmp_path / "before", tmp_path / "after")
    found = population.load(tmp_path / "after")
    assert [member.score for member in found.ranked] == pytest.approx([0.75, 0.0, -0.375])
    assert found.folder.path == tmp_path / "after"


def _edit(made: Made, **values: object) -> None:
    path = made.path(1, 1)
    path.write_text(json.dumps(json.loads(path.read_text()) | values))


@pytest.mark.parametrize(
    ("values", "said"),
    [
        (dict(actor_steps="9"), "01-0001.json cannot be read: actor_steps must be "),
        (dict(number=7), "01-0001.json is missing or holds another decision"),
        (dict(rival=3), "Decision 1 of member 01 .* must name a rival from 0 to 2, got 3"),
        (dict(rival=None), "must name a rival from 0 to 2, got None"),
        (dict(new={RATE: 1e-3}), "must have a value of entropy_cost, got None"),
        (dict(new={RATE: 1e-3, "entropy_cost": "low"}), "a value of entropy_cost, got 'low'"),
    ],
)
def test_a_damaged_decision_is_told_in_a_sentence(
    values: dict[str, object], said: str, tmp_path: pathlib.Path
) -> None:
    _edit(evolved(tmp_path), **values)
    with pytest.raises(SettingsError, match=said):
        population.load(tmp_path)


def test_half_a_decision_is_told_in_a_sentence(tmp_path: pathlib.Path) -> None:
    made = evolved(tmp_path)
    path = made.path(1, 1)
    path.write_text(path.read_text()[:40])
    with pytest.raises(SettingsError, match=r"01-0001\.json cannot be read: "):
        population.load(tmp_path)
    made.folder.settings.write_text("{")
    with pytest.raises(SettingsError, match=r"population\.json cannot be read: "):
        population.load(tmp_path)


@pytest.mark.parametrize(
    ("value", "text"),
    [(1.5e-5, "1.5e−05"), (0.0123456, "0.0123"), (20.0, "20"), (3, "3"), ("vtrace", "vtrace")],
)
def test_values_are_short(value: object, text: str) -> None:
    assert population.shown(value) == text
    assert population.shown((value, value)) == f"{value},{value}"
