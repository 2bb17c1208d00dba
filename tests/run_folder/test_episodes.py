"""The record of episodes that end, and aggregates of the returns of several tasks."""

import math
import pathlib

import numpy as np
import pytest
import tensorflow as tf

from agents.environment_loop import Episode
from environments import scores
from launch.graph.evaluator_node import summary
from launch.graph.learner_node import split_metrics
from run_folder import episodes, task_returns
from run_folder.episodes import Episodes
from tests.run_folder.filling import fill

TASKS = ("catch", "catch:large_rewards")


def test_recent_returns_are_those_of_each_task_s_last_hundred_episodes(
    tmp_path: pathlib.Path,
) -> None:
    collected = Episodes(tmp_path, TASKS)
    assert all(math.isnan(value) for value in collected.recent_returns().values())
    collected.add([(0, 0, -5.0, 1, 1)] * 50, 1, (0, 0.0), 1.0)
    assert collected.recent_returns()["catch"] == -5
    later = [(0, 0, 1.0, 1, 1)] * episodes.RECENT_EPISODES + [(1, 1, 1_000.0, 1, 1)]
    collected.add(later, 1, (1, 1.0), 2.0)
    assert collected.recent_returns() == {"catch": 1, "catch:large_rewards": 1_000}


def test_each_episode_is_taken_once_and_in_order(tmp_path: pathlib.Path) -> None:
    collected = Episodes(tmp_path, TASKS)
    collected.add([(0, 0, 1.0, 9, 30)], 40, (100, 7.0), 9.0)
    collected.add([(1, 1, -1_000.0, 9, 9), (0, 0, -1.0, 9, 18)], 18, (140, 9.0), 10.0)
    assert collected.take_new() == [
        (130, 8.5, 0, "catch", 1.0, 9),  # three quarters of its report's steps and seconds
        (149, 9.5, 1, "catch:large_rewards", -1_000.0, 9),
        (158, 10.0, 0, "catch", -1.0, 9),
    ]
    assert collected.take_new() == []


def test_a_resumed_run_appends_its_episodes(tmp_path: pathlib.Path) -> None:
    for part in (1, 2):
        collected = Episodes(tmp_path, TASKS)
        since = (100 * part - 9, 60.0404 * part)
        collected.add([(3, 1, 1_000.0, 9, 9)], 9, since, 60.0404 * part)
        for _ in range(2):
            collected.write()
    assert (tmp_path / "logs" / "episodes.csv").read_text().splitlines() == [
        "actor_steps,walltime,actor,task,episode_return,episode_length",
        "100,60.04,3,catch:large_rewards,1000.0,9",
        "200,120.081,3,catch:large_rewards,1000.0,9",
    ]


def test_a_disk_that_takes_a_part_costs_no_episode(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    collected, log = Episodes(tmp_path, TASKS), tmp_path / "logs" / "episodes.csv"
    collected.add([(3, 1, 1_000.0, 9, 9)], 9, (0, 0.0), 1.0)
    collected.write()
    before = log.read_bytes()
    collected.add([(4, 1, -1_000.0, 9, 9)], 9, (9, 1.0), 2.0)
    with monkeypatch.context() as full:
        fill(full, 7)
        with pytest.raises(OSError, match="No space left"):
            collected.write()
    assert log.read_bytes() == before
    collected.write()
    assert len(log.read_text().splitlines()) == 3


NAN = float("nan")


def _return(task: str, normalised: float) -> float:
    """The return of a task that has a human-normalised score."""
    random, human = scores.SCORES[task]["random"], scores.SCORES[task]["human"]
    return random + normalised * (human - random)


RETURNS = {
    "atari:pong": _return("atari:pong", 0.2),
    "catch": 0.5,
    "atari:boxing": _return("atari:boxing", 4.0),
    "atari:qbert": _return("atari:qbert", 0.6),
}


def test_aggregates_are_over_the_tasks_with_human_scores() -> None:
    assert task_returns.aggregates(RETURNS) == pytest.approx(
        dict(
            normalised_tasks=3,
            median_normalised=0.6,
            mean_normalised=(0.2 + 4.0 + 0.6) / 3,
            mean_capped=(0.2 + 1.0 + 0.6) / 3,
        )
    )


def test_a_task_that_was_not_played_yet_is_left_out_and_not_counted() -> None:
    found = task_returns.aggregates(RETURNS | {"atari:boxing": NAN})
    assert found["normalised_tasks"] == 2
    assert found["median_normalised"] == pytest.approx(0.4)
    nothing = task_returns.aggregates(dict.fromkeys(RETURNS, NAN))
    assert nothing.pop("normalised_tasks") == 0
    assert all(math.isnan(value) for value in nothing.values())


def test_nothing_is_told_before_a_task_with_human_scores_was_played() -> None:
    nothing = task_returns.aggregates(dict.fromkeys(RETURNS, NAN) | {"catch": 0.5})
    assert task_returns.percent(nothing) == "-"
    told = task_returns.percent(task_returns.aggregates({"catch": NAN} | RETURNS))
    assert told == "median 60.0%, mean 160.0%, capped 60.0% of 3 tasks"


@pytest.mark.parametrize("value", [0.5, NAN])
def test_there_is_nothing_to_aggregate_without_human_scores(value: float) -> None:
    returns = {"catch": value, "catch:large_rewards": 1_000.0}
    assert task_returns.aggregates(returns) == {}
    assert list(task_returns.columns(returns)) == ["return/catch", "return/catch:large_rewards"]


def test_columns_are_the_same_before_and_after_the_first_episodes() -> None:
    before, after = (task_returns.columns(r) for r in (dict.fromkeys(RETURNS, NAN), RETURNS))
    assert list(before) == list(after)
    assert {name: value for name, value in after.items() if "/" in name} == {
        f"return/{task}": value for task, value in RETURNS.items()
    }


def test_evaluations_are_compared_in_units_of_human_play_where_all_tasks_have_them() -> None:
    known = {task: value for task, value in RETURNS.items() if not task.startswith("catch")}
    assert task_returns.overall(known) == pytest.approx((0.2 + 4.0 + 0.6) / 3)
    assert task_returns.overall(known | {"catch": 0.5}) == pytest.approx(
        (sum(known.values()) + 0.5) / (len(known) + 1)
    )
    for name in ("catch", "atari:boxing"):
        assert math.isnan(task_returns.overall(known | {name: NAN}))


def test_an_evaluation_is_summed_up_over_all_tasks_and_for_each() -> None:
    episodes = [Episode(i, float(value), 10 + i) for i, value in enumerate([1, 3, 10, 30])]
    tasks = ("catch", "catch:large_rewards")
    assert summary(tasks, tasks, episodes) == {
        "episodes": 4,
        "episode_return": 11.0,
        "episode_return_min": 1.0,
        "episode_return_max": 30.0,
        "episode_length": 11.5,
        "return/catch": 2.0,
        "return/catch:large_rewards": 20.0,
    }
    assert not [name for name in summary(("catch",), ("catch",), episodes) if "/" in name]


def test_an_updates_vectors_become_a_column_for_each_task() -> None:
    metrics = {"loss": tf.constant(0.5), "mu": tf.constant([1.0, 2.0]), "sigma": np.ones(2)}
    scalars, of_tasks = split_metrics(metrics, ("catch", "catch:large_rewards"))
    assert scalars == {"loss": 0.5}
    assert of_tasks == {
        "mu/catch": 1.0,
        "mu/catch:large_rewards": 2.0,
        "sigma/catch": 1.0,
        "sigma/catch:large_rewards": 1.0,
    }
    with pytest.raises(ValueError, match="shorter"):
        split_metrics(metrics, ("catch", "atari:pong", "atari:qbert"))
