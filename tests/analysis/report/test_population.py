"""A population is read from its folder, and its members' lives cut where weights changed hands."""

import json
import math
import pathlib
from typing import Any

import numpy as np
import pytest

from analysis.report import population
from analysis.report.charts import COLOURS, Segment, Trace, binned
from analysis.report.population import OTHERS, Stretch
from environments import scores
from run_folder.log_reader import Log
from run_folder.settings import SettingsError
from tests.analysis.report.made_up_population import COST, RATE, Made, evolved
from tests.population.populations import decision_of

PONG, BOXING = "atari:pong", "atari:boxing"


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
    assert found.ranked[0].end == 40_000
    assert found.ranked[0].values == {RATE: 1e-4, COST: 0.25}


def test_the_end_of_a_turn_is_not_the_end(tmp_path: pathlib.Path) -> None:
    made = Made(tmp_path, members=6, told={"max_actor_steps": 3_000, "num_actors": 8})
    for member, returns, reason in ((0, [0.0] * 2, "turn"), (1, [0.0] * 3, "limit"), (2, [], "")):
        made.play(member, returns).progress(state="", reason=reason)
    made.play(3, [])
    half = made.play(4, [0.0])
    (half.path / "nodes" / "progress.json").write_text('{"state": "runn')
    states = {member.number: member.state for member in population.load(tmp_path).ranked}
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
    assert (best.number, best.score, best.end) == (0, 1.0, 19_000)
    assert [member.number for member in others] == [1, 2]  # who has no score comes last
    assert all(math.isnan(member.score) and member.end == 0 for member in others)
    assert {len(member.scores.x) for member in others} == {0}


def test_few_members_have_a_colour_each_and_of_many_that_stay_apart_the_best(
    tmp_path: pathlib.Path,
) -> None:
    few = _many(tmp_path / "few", len(COLOURS))
    found = population.load(few.folder.path)
    assert sorted(found.colours.values()) == list(range(len(COLOURS)))
    assert found.colours[len(COLOURS) - 1] == 0  # of the best
    assert ("others", OTHERS) not in found.legend
    many = _many(tmp_path / "many", 14, evolve="none")
    found = population.load(many.folder.path)
    assert found.colours == {13 - i: i for i in range(OTHERS)}
    assert [found.colour(member.ancestor) for member in found.ranked[8:10]] == [8, OTHERS]


def test_of_many_those_from_whom_the_best_descend_have_colours(tmp_path: pathlib.Path) -> None:
    made = _many(tmp_path, 14)
    made.decide(12, 5_000, rival=2, adopts=True)
    found = population.load(tmp_path)
    assert [member.number for member in found.ranked[:3]] == [13, 12, 11]
    # 12's own weights are no more, and 0's are the worst.
    assert found.colours == {13: 0, 2: 1} | {13 - i: i for i in range(2, OTHERS)}
    assert found.legend[1] == ("from 02", 1)
    assert found.legend[-1] == ("others", OTHERS)


@pytest.mark.parametrize(
    ("values", "said"),
    [
        (dict(rival=3), "Decision 1 of member 01 .*: its rival must be from 0 to 2, got 3"),
        (dict(rival=None), "its rival must be from 0 to 2, got None"),
        (dict(ancestor=3), "its ancestor must be from 0 to 2, got 3"),
        (dict(new={RATE: 1e-3}), "it must be of learning_rate, entropy_cost, got "),
        (dict(new={RATE: 1e-3, COST: "low"}), "entropy_cost must be a number .*, got 'low'"),
    ],
)
def test_a_decision_of_another_population_is_told_in_a_sentence(
    values: dict[str, object], said: str, tmp_path: pathlib.Path
) -> None:
    path = evolved(tmp_path).path(1, 1)
    path.write_text(json.dumps(json.loads(path.read_text()) | values))
    with pytest.raises(SettingsError, match=said):
        population.load(tmp_path)


def _log(steps: np.ndarray, returns: np.ndarray, tasks: list[str]) -> Log:
    numbers = {"actor_steps": steps, "episode_return": returns}
    return Log(numbers, {"task": np.asarray(tasks, object)})


@pytest.mark.parametrize(("count", "points"), [(1, 1), (19, 1), (25, 2), (5_000, 100)])
def test_the_score_of_one_task_is_its_mean_return_at_few_points(count: int, points: int) -> None:
    rng = np.random.default_rng(0)
    steps, returns = np.sort(rng.uniform(0, 1e6, count)), rng.normal(size=count)
    found = population.score_curve(_log(steps, returns, ["catch"] * count), ["catch"])
    naive = binned(steps, returns, bins=points)
    np.testing.assert_allclose([found.x, found.y], [naive.x, naive.y])


def test_the_score_of_a_suite_is_the_mean_of_what_is_cut_off_at_a_humans() -> None:
    """Of 40 episodes there are two parts; of pong none ended in the second."""
    humans = {task: scores.SCORES[task]["human"] for task in (PONG, BOXING)}
    random = scores.SCORES[BOXING]["random"]
    half = random + 0.5 * (humans[BOXING] - random)
    tasks = [PONG, BOXING] * 10 + [BOXING] * 20
    returns = [humans[PONG] + 5, random] * 10 + [half] * 20
    log = _log(np.arange(40.0), np.asarray(returns), tasks)
    found = population.score_curve(log, [PONG, BOXING])
    assert found.y.tolist() == pytest.approx([(1 + 0) / 2, (1 + 0.5) / 2])
    assert found.x.tolist() == [9.5, 29.5]


def test_what_is_no_number_is_left_out() -> None:
    steps = np.arange(20.0)
    returns = np.where(steps % 2 == 0, math.nan, 3.0)
    found = population.score_curve(_log(steps, returns, ["catch"] * 20), ["catch"])
    assert (found.x.tolist(), found.y.tolist()) == ([10.0], [3.0])
    for log in (
        _log(steps, 0 * steps + math.nan, ["catch"] * 20),
        _log(steps, steps, ["catch:other"] * 20),
        Log({}, {}),
    ):
        assert len(population.score_curve(log, ["catch"]).x) == 0


def _itself(ancestor: int) -> int:
    """Stands for its colour."""
    return ancestor


def _pieces(found: list[Trace]) -> list[tuple[int, list[float], list[float]]]:
    return [(piece.colour, piece.x.tolist(), piece.y.tolist()) for piece in found]


@pytest.mark.parametrize(
    ("stretches", "pieces"),
    [
        ([(0, 5), (25, 2), (30, 7)],
         [(5, [10, 20, 25], [0, 1, 2]), (2, [25, 30], [2, 3]), (7, [30, 40], [3, 3])]),
        # Without an episode there is no piece; what was taken over with the last one has none yet.
        ([(0, 5), (5, 2), (5, 3), (90, 7)], [(3, [10, 20, 30, 40], [0, 1, 3, 3])]),
        ([(0, 5), (40, 7)], [(5, [10, 20, 30, 40], [0, 1, 3, 3])]),
    ],
)  # fmt: skip
def test_a_curve_is_cut_where_weights_were_taken_over(
    stretches: list[tuple[int, int]], pieces: list[tuple[int, list[float], list[float]]]
) -> None:
    curve = Trace(np.array([10.0, 20, 30, 40]), np.array([0.0, 1, 3, 3]))
    cuts = [Stretch(*stretch) for stretch in stretches]
    assert _pieces(population.cut(curve, cuts, _itself)) == pieces
    assert population.cut(Trace(np.empty(0), np.empty(0)), cuts, _itself) == []


def test_a_value_holds_until_the_next_decision() -> None:
    made = [
        decision_of(0, number, actor_steps=steps, ancestor=ancestor, new=dict(rate=value))
        for number, steps, value, ancestor in ((0, 0, 1, 5), (1, 100, 2, 4), (2, 150, 3, 4))
    ]
    assert _pieces(population.held(made, "rate", 400, _itself)) == [
        (5, [0, 0, 100], [1, 1, 1]),
        (4, [100, 100, 150], [1, 2, 2]),
        (4, [150, 150, 400], [2, 3, 3]),
    ]
    # Of what was decided last there is a point.
    (last,) = population.held(made[:1], "rate", 0, _itself)
    _, dot = population.joined([last])
    assert (dot.x.tolist(), dot.y.tolist(), dot.colour, dot.style) == ([0], [1], 5, "o")


def test_lines_of_one_colour_are_one_line_with_gaps() -> None:
    pieces = [
        Trace(np.asarray(x, float), np.asarray(x, float), colour)
        for colour, x in ((1, [0, 1]), (9, [2, 3]), (1, [4, 5]), (1, [6]))
    ]
    others, line, dot = population.joined(pieces)
    assert [others.colour, line.colour, dot.colour] == [9, 1, 1]  # the grey one below
    np.testing.assert_equal(line.x, [0, 1, math.nan, 4, 5, math.nan])
    assert (dot.style, dot.x.tolist()) == ("o", [6])
    assert population.joined([]) == []


def _links(found: list[Segment]) -> list[Segment]:
    return [segment for segment in found if segment.from_lane != segment.to_lane]


def test_a_line_leads_from_where_weights_were_to_where_they_were_taken_over(
    tmp_path: pathlib.Path,
) -> None:
    evolved(tmp_path)
    members = population.load(tmp_path)
    found = population.segments(members, members.ranked)  # 02, 01, 00
    assert set(_links(found)) == {
        Segment(2, 12_000, 1, 10_000, 0),
        Segment(1, 15_000, 0, 20_000, 0),
    }
    assert set(found) - set(_links(found)) == {
        Segment(0, 0, 0, 20_000, 2),
        Segment(0, 20_000, 0, 40_000, 0),
        Segment(1, 0, 1, 10_000, 1),
        Segment(1, 10_000, 1, 40_000, 0),
        Segment(2, 0, 2, 40_000, 0),
    }


def test_where_a_log_does_not_tell_when_an_update_was_made_decisions_do(
    tmp_path: pathlib.Path,
) -> None:
    made = Made(tmp_path, 3)
    made.begin({RATE: [1e-4] * 3, COST: [0.5] * 3})
    made.decide(0, 10_000, rival=1, adopts=True)
    made.decide(2, 30_000, rival=0, adopts=True, at=90)  # 45,000 steps, by the log
    made.decide(0, 20_000, rival=1)
    made.play(0, [0.0] * 50)
    made.decide(1, 30_000, rival=2, adopts=True, at=10)  # 2 has no log
    members = population.load(tmp_path)
    lanes = sorted(members.ranked, key=lambda member: member.number)
    found = _links(population.segments(members, lanes))
    assert {(link.from_lane, link.to_lane): link.from_x for link in found} == {
        (1, 0): 0,
        (0, 2): 20_000,
        (2, 1): 30_000,
    }


def test_families_stand_together_that_of_the_best_first(tmp_path: pathlib.Path) -> None:
    """Of many members, the other families are grey."""
    made = _many(tmp_path, 14)
    made.decide(1, 2_000, rival=13, adopts=True)
    made.decide(0, 2_000, rival=2, adopts=True)
    members = population.load(tmp_path)
    lanes = population.by_family(members.ranked)
    assert [member.number for member in lanes] == [13, 1, *range(12, 1, -1), 0]
    links = {
        (s.from_lane, s.to_lane, s.colour) for s in _links(population.segments(members, lanes))
    }
    assert links == {(0, 1, 0), (12, 13, OTHERS)}
