"""Whole runs on a suite of two tasks, whose rewards differ a thousandfold."""

import math
import pathlib
import signal

import pytest

from tests.launch.runs import Run

pytestmark = pytest.mark.launchpad

TASKS = ("catch", "catch:large_rewards")
FLAGS = (f"--env={','.join(TASKS)}", "--num_actors=8")
SHORT = "--popart.length=16"  # statistics move with each unroll, whose length is steps to wait for


def test_returns_and_statistics_are_logged_for_each_task(tmp_path: pathlib.Path) -> None:
    often = "--evaluation_minutes=0.05"
    with Run(tmp_path / "run", "--agent=popart", *FLAGS, SHORT, often) as run:
        run.wait_until(lambda: run.count("learner_steps") >= 120)
        run.wait_until(lambda: bool(run.rows("evaluator")))
        code, _, err = run.end(signal.SIGTERM)
    assert (code, err) == (0, "")
    ended = run.rows("episodes")
    assert {row["task"] for row in ended} == set(TASKS)
    for row in ended:
        assert row["task"] == TASKS[int(row["actor"]) % 2]
        assert abs(float(row["episode_return"])) == (1_000 if "large" in row["task"] else 1)
    last = run.rows("tasks")[-1]
    assert abs(float(last["return/catch"])) <= 1
    last = run.rows("learner-popart")[-1]
    assert 0 < float(last["sigma/catch"]) < 3
    assert float(last["sigma/catch:large_rewards"]) > 100
    assert {f"mu/{task}" for task in TASKS} <= set(last)
    evaluated = run.rows("evaluator")[0]
    assert {f"return/{task}" for task in TASKS} <= set(evaluated)
    assert int(evaluated["episodes"]) == len(TASKS)  # one of each, where not told


@pytest.mark.slow
def test_r2d2_and_popart_learn_a_suite_from_one_stream(tmp_path: pathlib.Path) -> None:
    flags = ("--agent=r2d2,popart", *FLAGS, "--evaluation_episodes=0")
    with Run(tmp_path / "run", *flags) as run:
        run.wait_until_learning()
        run.wait_until(
            lambda: all(of["learner_steps"] >= 20 for of in run.progress()["learners"].values())
        )
        learners = run.progress()["learners"]
        code, _, err = run.end(signal.SIGTERM)
    assert (code, err) == (0, "")
    assert set(learners) == {"r2d2", "popart"}
    assert all(math.isfinite(of["loss"]) for of in learners.values())
    assert "sigma/catch:large_rewards" in run.rows("learner-popart")[0]
    assert not [name for name in run.rows("learner-r2d2")[0] if "/" in name]
    played = {(int(row["actor"]), row["task"]) for row in run.rows("episodes")}
    # Four actors follow each agent, and each agent's play both tasks.
    assert played == {(actor, TASKS[actor % 4 % 2]) for actor in range(8)}
