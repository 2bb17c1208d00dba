"""Lines of members: scores of parts of their lives, values that hold, and where both are cut."""

import math

import numpy as np
import pytest

from analysis.report import population_curves
from analysis.report.curves import Curve, binned
from analysis.report.population_curves import Piece
from environments import scores
from population.ancestry import Stretch
from run_folder.log_reader import Log
from tests.population.populations import decision_of

PONG, BOXING = "atari:pong", "atari:boxing"


def _log(steps: np.ndarray, returns: np.ndarray, tasks: list[str]) -> Log:
    numbers = {"actor_steps": steps, "episode_return": returns}
    return Log(numbers, {"task": np.asarray(tasks, object)})


def _curve(x: list[float], y: list[float]) -> Curve:
    return Curve(*(np.asarray(values, float) for values in (x, y, y, y)))


@pytest.mark.parametrize(("count", "points"), [(1, 1), (19, 1), (25, 2), (5_000, 100)])
def test_the_score_of_one_task_is_its_mean_return_at_few_points(count: int, points: int) -> None:
    rng = np.random.default_rng(0)
    steps, returns = np.sort(rng.uniform(0, 1e6, count)), rng.normal(size=count)
    found = population_curves.of_scores(_log(steps, returns, ["catch"] * count), ["catch"])
    naive = binned(steps, returns, bins=points)
    np.testing.assert_allclose(found.x, naive.x)
    np.testing.assert_allclose(found.mean, naive.mean)


def test_the_score_of_a_suite_is_the_mean_of_what_is_cut_off_at_a_humans() -> None:
    """Of 40 episodes there are two parts; of pong none ended in the second."""
    humans = {task: scores.SCORES[task]["human"] for task in (PONG, BOXING)}
    random = scores.SCORES[BOXING]["random"]
    half = random + 0.5 * (humans[BOXING] - random)
    tasks = [PONG, BOXING] * 10 + [BOXING] * 20
    returns = [humans[PONG] + 5, random] * 10 + [half] * 20
    found = population_curves.of_scores(
        _log(np.arange(40.0), np.asarray(returns), tasks), [PONG, BOXING]
    )
    assert found.mean.tolist() == pytest.approx([(1 + 0) / 2, (1 + 0.5) / 2])
    assert found.x.tolist() == [9.5, 29.5]


def test_what_is_no_number_is_left_out() -> None:
    steps = np.arange(20.0)
    returns = np.where(steps % 2 == 0, math.nan, 3.0)
    found = population_curves.of_scores(_log(steps, returns, ["catch"] * 20), ["catch"])
    assert (found.x.tolist(), found.mean.tolist()) == ([10.0], [3.0])
    nothing = population_curves.of_scores(
        _log(steps, 0 * steps + math.nan, ["catch"] * 20), ["catch"]
    )
    assert len(nothing.x) == 0
    assert len(population_curves.of_scores(Log({}, {}), ["catch"]).x) == 0
    other = population_curves.of_scores(_log(steps, steps, ["catch:other"] * 20), ["catch"])
    assert len(other.x) == 0


def _pieces(found: list[Piece]) -> list[tuple[int, list[float], list[float]]]:
    return [(piece.ancestor, piece.x.tolist(), piece.y.tolist()) for piece in found]


def test_a_curve_is_cut_where_weights_were_taken_over() -> None:
    curve = _curve([10, 20, 30, 40], [0, 1, 3, 3])
    stretches = [Stretch(0, 5), Stretch(25, 2), Stretch(30, 7)]
    assert _pieces(population_curves.cut(curve, stretches)) == [
        (5, [10, 20, 25], [0, 1, 2]),
        (2, [25, 30], [2, 3]),
        (7, [30, 40], [3, 3]),
    ]


def test_stretches_without_episodes_have_no_piece() -> None:
    curve = _curve([10, 20], [0, 1])
    stretches = [Stretch(0, 5), Stretch(5, 2), Stretch(5, 3), Stretch(90, 7)]
    assert _pieces(population_curves.cut(curve, stretches)) == [(3, [10, 20], [0, 1])]
    # What was taken over with the last episode has none yet.
    last = [Stretch(0, 5), Stretch(20, 7)]
    assert _pieces(population_curves.cut(curve, last)) == [(5, [10, 20], [0, 1])]
    assert population_curves.cut(_curve([], []), stretches) == []


def test_a_value_holds_until_the_next_decision() -> None:
    made = [
        decision_of(0, number, actor_steps=steps, adopted=adopted, new=dict(rate=value))
        for number, steps, value, adopted in ((0, 0, 1, None), (1, 100, 2, 0), (2, 150, 3, None))
    ]
    found = population_curves.steps(made, [Stretch(0, 5), Stretch(100, 4)], "rate", end=400)
    assert _pieces(found) == [
        (5, [0, 0, 100], [1, 1, 1]),
        (4, [100, 100, 150], [1, 2, 2]),
        (4, [150, 150, 400], [2, 3, 3]),
    ]
    # Of what was decided last there is a point.
    (last,) = population_curves.steps(made[:1], [Stretch(0, 5)], "rate", end=0)
    _, dot = population_curves.traces([(3, last)])
    assert (dot.curve.x.tolist(), dot.curve.mean.tolist()) == ([0], [1])
    assert (dot.colour, dot.style) == (3, "o")


def test_lines_of_one_colour_are_one_line_with_gaps() -> None:
    pieces = [
        (colour, Piece(0, np.asarray(x, float), np.asarray(x, float)))
        for colour, x in ((1, [0, 1]), (9, [2, 3]), (1, [4, 5]), (1, [6]))
    ]
    others, line, dot = population_curves.traces(pieces)
    assert [others.colour, line.colour, dot.colour] == [9, 1, 1]  # the grey one below
    np.testing.assert_equal(line.curve.x, [0, 1, math.nan, 4, 5, math.nan])
    assert (dot.style, dot.curve.x.tolist()) == ("o", [6])
    assert population_curves.traces([]) == []
