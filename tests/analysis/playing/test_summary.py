"""What is printed of an evaluation."""

import numpy as np

from analysis.playing import intervals, summary
from environments import scores

SCORES = scores.SCORES["atari:pong"]
RETURNS = np.array([20.0, 21.0, 19.0, 21.0])


def test_a_task_with_human_scores() -> None:
    line = summary.of_task("r2d2", "atari:pong", RETURNS)
    low, high = intervals.of_mean(RETURNS)
    span = SCORES["human"] - SCORES["random"]
    normalised = [(x - SCORES["random"]) / span for x in (20.25, low, high)]
    assert line == (
        "r2d2 on atari:pong: mean return 20.25 over 4 episodes "
        f"[{low:.2f}, {high:.2f}], from 19.0 to 21.0; human-normalised {normalised[0]:.1%} "
        f"[{normalised[1]:.1%}, {normalised[2]:.1%}]"
    )


def test_a_task_without_and_a_single_episode() -> None:
    assert summary.of_task("impala", "catch", np.array([-1.0])) == (
        "impala on catch: mean return -1.00 over 1 episodes, from -1.0 to -1.0"
    )


def test_a_suite_is_summed_up_over_the_tasks_that_have_human_scores() -> None:
    returns = {"atari:pong": RETURNS, "catch": RETURNS, "atari:breakout": 10 * RETURNS}
    (line,) = summary.of_suite("popart", returns)
    means = [scores.human_normalised(task, returns[task].mean()) for task in returns]
    found = scores.aggregate([mean for mean in means if mean is not None])
    assert line.startswith("popart, human-normalised over 2 tasks: ")
    median, mean, capped = line.partition(": ")[2].split("], ")
    assert median.startswith(f"median {found.median:.1%} [")
    assert mean.startswith(f"mean {found.mean:.1%} [")
    assert capped.startswith(f"mean capped {found.mean_capped:.1%} [")


def test_one_task_or_none_with_human_scores_is_no_suite() -> None:
    for tasks in (("catch", "memory:recall"), ("atari:pong", "catch")):
        assert not list(summary.of_suite("popart", dict.fromkeys(tasks, RETURNS)))


def test_single_episodes_have_no_interval_in_a_suite_either() -> None:
    one = dict.fromkeys(("atari:pong", "atari:breakout"), RETURNS[:1])
    (line,) = summary.of_suite("popart", one)
    assert "[" not in line
