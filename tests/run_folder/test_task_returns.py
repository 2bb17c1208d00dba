"""What the returns of several tasks, training and evaluation alike, amount to."""

import math

import numpy as np
import pytest
import tensorflow as tf

from agents.environment_loop import Episode
from environments import scores
from launch.graph.evaluator_node import summary
from launch.graph.learner_node import split_metrics
from run_folder import task_returns

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


def test_a_single_task_has_no_columns_of_its_own() -> None:
    assert task_returns.columns({"atari:pong": 3.0}) == {}


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
