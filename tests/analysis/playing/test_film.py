"""A film shows what is decided, what comes of it, and what the agent thought."""

import itertools
import pathlib
from typing import Any

import numpy as np
import pytest

from analysis.playing import evaluation, film
from tests.run_folder import saved_runs

MOVES = {"left": -1, "stay": 0, "right": 1}


def _shoot(folder: pathlib.Path, agent: str, **how: Any) -> list[film.Frame]:
    player = evaluation.load(saved_runs.save(folder, agent), agent, **how)
    speed, frames = film.shoot(player, "catch")
    assert speed == 4
    return list(frames)


def _paddle(frame: film.Frame) -> int:
    (column,) = np.flatnonzero(frame.picture[-1, :, 0])
    return int(column)


@pytest.fixture(scope="module")
def frames(tmp_path_factory: pytest.TempPathFactory) -> list[film.Frame]:
    """R2D2, which acts at random."""
    return _shoot(tmp_path_factory.mktemp("runs") / "run", "r2d2", epsilon=1.0, seed=2)


def test_an_episode_has_a_frame_for_each_step_and_a_last_one(frames: list[film.Frame]) -> None:
    assert [frame.step for frame in frames] == list(range(10))
    assert all(frame.picture.shape == (10, 5, 3) for frame in frames)
    assert [frame.score for frame in frames[:-1]] == [0.0] * 9
    caught = frames[-1].picture[-1].any(axis=-1).sum() == 1  # the ball is where the paddle is
    assert frames[-1].score == (1.0 if caught else -1.0)
    assert frames[-1].action == ""


def test_a_frame_shows_the_action_that_leads_to_the_next(frames: list[film.Frame]) -> None:
    actions = [frame.action for frame in frames[:-1]]
    assert len(set(actions)) > 1
    for before, after in itertools.pairwise(frames[:-1]):
        moved = _paddle(before) + MOVES[before.action]
        assert _paddle(after) == np.clip(moved, 0, 4)


def test_r2d2_says_q_and_that_it_is_sure(tmp_path: pathlib.Path) -> None:
    greedy = _shoot(tmp_path / "run", "r2d2")
    assert all(set(frame.estimates) == {"Q"} for frame in greedy)
    assert len({frame.estimates["Q"] for frame in greedy[:-1]}) > 3
    assert all(frame.probability == 1.0 for frame in greedy)


def test_impala_says_v_and_how_probable_its_action_was(tmp_path: pathlib.Path) -> None:
    sampled = _shoot(tmp_path / "run", "impala")
    assert all(set(frame.estimates) == {"V"} for frame in sampled)
    assert all(0 < frame.probability < 1 for frame in sampled[:-1])


def test_a_random_action_is_as_probable_as_it_is(frames: list[film.Frame]) -> None:
    assert [frame.probability for frame in frames[:-1]] == pytest.approx([1 / 3] * 9)
