"""Whole runs on a suite of two tasks, whose rewards differ a thousandfold."""

import csv
import math
import os
import pathlib
import signal
import subprocess
import sys
from typing import NamedTuple

import pytest

from tests.launch.runs import Run, all_gone

pytestmark = pytest.mark.launchpad

TASKS = ("catch", "catch:large_rewards")
FLAGS = (f"--env={','.join(TASKS)}", "--num_actors=8")
LIMIT = 120
RESUMED = 30  # updates after a resume


class Logs(NamedTuple):
    """What a run logged by the time it ended: columns and rows, by log."""

    columns: dict[str, list[str]]
    rows: dict[str, list[dict[str, str]]]


def _read(run_dir: pathlib.Path) -> Logs:
    columns, rows = {}, {}
    for path in (run_dir / "logs").glob("*.csv"):
        with path.open() as file:
            reader = csv.DictReader(file)
            rows[path.stem] = list(reader)
            columns[path.stem] = list(reader.fieldnames or ())
    return Logs(columns, rows)


class Resumed(NamedTuple):
    """A run that reached its limit and then went on to another."""

    run: Run
    before: Logs
    after: Logs


@pytest.fixture(scope="module")
def resumed(tmp_path_factory: pytest.TempPathFactory) -> Resumed:
    run_dir = tmp_path_factory.mktemp("runs") / "popart"
    logs = []
    for flags in (
        ("--agent=popart", *FLAGS, "--evaluation_minutes=0.05", f"--max_learner_steps={LIMIT}"),
        ("--resume", f"--max_learner_steps={LIMIT + RESUMED}"),
    ):
        with Run(run_dir, *flags) as run:
            run.wait_until_learning()
            nodes = run.nodes()
            code, _, err = run.finish()
            assert (code, err, all_gone(nodes)) == (0, "", True)
        logs.append(_read(run_dir))
    return Resumed(run, *logs)


def test_returns_and_statistics_are_logged_for_each_task(resumed: Resumed) -> None:
    rows = resumed.before.rows
    assert {row["task"] for row in rows["episodes"]} == set(TASKS)
    for row in rows["episodes"]:
        assert row["task"] == TASKS[int(row["actor"]) % 2]
        assert abs(float(row["episode_return"])) == (1_000 if "large" in row["task"] else 1)
    last = rows["tasks"][-1]
    assert abs(float(last["return/catch"])) <= 1 < abs(float(last["return/catch:large_rewards"]))
    last = rows["learner-popart"][-1]
    assert 0 < float(last["sigma/catch"]) < 3
    assert float(last["sigma/catch:large_rewards"]) > 100
    assert {f"mu/{task}" for task in TASKS} <= set(last)
    assert {f"return/{task}" for task in TASKS} <= set(rows["evaluator"][0])
    assert int(rows["evaluator"][0]["episodes"]) == len(TASKS)  # one of each, where not told


def test_statistics_go_on_from_the_checkpoint(resumed: Resumed) -> None:
    before = resumed.before.rows["learner-popart"][-1]
    rows = resumed.after.rows["learner-popart"][len(resumed.before.rows["learner-popart"]) :]
    assert LIMIT < int(rows[0]["learner_steps"]) <= LIMIT + RESUMED
    # From nothing, the first logged row, a second or so after the start, would not come near.
    name = "sigma/catch:large_rewards"
    assert float(before[name]) > 150
    assert float(rows[0][name]) >= 0.9 * float(before[name])
    assert resumed.run.manifest()["learner_step"] == LIMIT + RESUMED


def test_a_resumed_run_appends_to_every_log_under_the_same_columns(resumed: Resumed) -> None:
    assert resumed.after.columns == resumed.before.columns
    for log, rows in resumed.before.rows.items():
        after = resumed.after.rows[log]
        assert after[: len(rows)] == rows
        assert len(after) > len(rows) or log == "evaluator"
        for row in after:
            assert None not in row  # more values than columns
            numbers = [value for name, value in row.items() if name != "task"]
            assert all(value is not None and not math.isinf(float(value)) for value in numbers)


def test_evaluate_plays_every_task(resumed: Resumed) -> None:
    command = (sys.executable, "-m", "launch.evaluate", f"--run_dir={resumed.run.path}")
    result = subprocess.run(
        [*command, "--episodes=3"], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    assert len(result) == len(TASKS) + 1
    for line, task in zip(result, TASKS, strict=False):
        assert line.startswith(f"popart on {task}: mean return ")
        assert "over 3 episodes" in line


@pytest.mark.slow
def test_r2d2_and_popart_learn_a_suite_from_one_stream(tmp_path: pathlib.Path) -> None:
    flags = ("--agent=r2d2,popart", *FLAGS, "--evaluation_episodes=0")
    with Run(tmp_path / "run", *flags) as run:
        run.wait_until_learning()
        run.wait_until(
            lambda: all(of["learner_steps"] >= 20 for of in run.progress()["learners"].values())
        )
        learners = run.progress()["learners"]
        nodes = run.nodes()
        os.kill(run.pid, signal.SIGTERM)
        code, _, err = run.finish()
        assert all_gone(nodes)
    assert (code, err) == (0, "")
    assert set(learners) == {"r2d2", "popart"}
    assert all(math.isfinite(of["loss"]) for of in learners.values())
    logs = _read(run.path)
    assert "sigma/catch:large_rewards" in logs.columns["learner-popart"]
    assert not [name for name in logs.columns["learner-r2d2"] if "/" in name]
    played = {(int(row["actor"]), row["task"]) for row in logs.rows["episodes"]}
    # Four actors follow each agent, and each agent's play both tasks.
    assert played == {(actor, TASKS[actor % 4 % 2]) for actor in range(8)}
