"""Learning curves of trainings that have a core each: what is kept of them."""

import csv
import pathlib

import numpy as np
import pytest

from benchmarks import curves
from benchmarks.curves import CONTROL, MEMORY, STUDIES, Minute
from benchmarks.study import Episodes
from r2d2.config import VARIANTS
from r2d2.policy import epsilon_ladder
from run_folder.layout import RunFolder

COLUMNS = ("task", "walltime", "actor_steps", "episode_return", "actor")


def test_each_training_has_a_folder_of_its_own() -> None:
    runs = [run for study in STUDIES.values() for run in study.runs]
    assert len({curves.folder_of(pathlib.Path("runs"), run) for run in runs}) == len(runs)


def test_returns_are_of_actors_that_hardly_explore() -> None:
    own = VARIANTS["r2d2"]
    actors = np.arange(curves.NUM_ACTORS)
    epsilons = epsilon_ladder(actors, len(actors), own.epsilon_base, own.epsilon_alpha)
    assert [i for i, epsilon in enumerate(epsilons) if epsilon < 0.01] == list(curves.GREEDY)


def test_episodes_are_kept_by_minute(tmp_path: pathlib.Path) -> None:
    log, rivals = RunFolder(tmp_path).log("episodes"), tmp_path / "rivals"
    rows = [(10, 100, 3, 15), (20, 200, -9, 0), (50, 300, 5, 9), (119, 900, 8, 12)]
    log.parent.mkdir()
    for path, lines in (
        (log, [COLUMNS, *(("t", *row) for row in rows)]),
        (rivals, [COLUMNS[1:], *rows]),
    ):
        with path.open("w") as file:
            csv.writer(file).writerows(lines)
    run, rival = STUDIES[MEMORY].runs[:2]
    assert (run.arm, rival.arm) == ("r2d2", "recurrent_ppo")
    assert list(curves.minutes_of(tmp_path, run)) == [
        (Minute(*run, 0), Episodes(200.0, 4.0)),  # of actors 9 to 15
        (Minute(*run, 1), Episodes(900.0, 8.0)),
    ]
    for found in (
        curves.minutes_of(rivals, rival),
        curves.minutes_of(tmp_path, STUDIES[CONTROL].runs[0]),
    ):
        (first, of_all), (second, of_last) = found
        assert (first.minute, second.minute) == (0, 1)
        assert of_all == pytest.approx((200.0, -1 / 3))
        assert of_last == (900.0, 8.0)


def test_random_actions_are_played_to_their_end_and_again_alike() -> None:
    returns = curves.random_returns("gym:CartPole-v1", 4)
    assert ((returns >= 8) & (returns < 200)).all()
    assert returns.max() >= 2 * returns.min()  # one that is over is not given what others are
    np.testing.assert_array_equal(returns, curves.random_returns("gym:CartPole-v1", 4))
