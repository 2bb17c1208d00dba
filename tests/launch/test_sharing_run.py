"""Whole runs in which R2D2 and IMPALA learn from one stream."""

import math
import os
import pathlib
import signal
import subprocess
import sys

import pytest

from tests.launch.runs import PATIENCE, Run, all_gone

pytestmark = [pytest.mark.launchpad, pytest.mark.slow]

SHARED = ("--agent=r2d2,impala", "--env=catch", "--num_actors=8", "--evaluation_episodes=0")
LIMIT = 40


def _updates(run: Run, agent: str) -> float:
    updates: float = run.progress()["learners"][agent]["learner_steps"]
    return updates


def test_a_finished_learner_does_not_stop_the_other(tmp_path: pathlib.Path) -> None:
    flags = (
        *SHARED,
        "--paced_by=impala",
        f"--max_learner_steps={LIMIT}",
        "--impala.batch_size=4",
        "--impala.queue_size=6",
        "--r2d2.batch_size=16",
        "--r2d2.samples_per_insert=0.25",
    )
    with Run(tmp_path / "run", *flags) as run:
        run.wait_until_learning()
        nodes = run.nodes()
        run.wait_until(lambda: run.manifest().get("learner_step") == LIMIT)
        assert run.manifest()["agent"] == "impala"
        assert _updates(run, "r2d2") < LIMIT / 2
        code, _, err = run.finish(PATIENCE)
        assert all_gone(nodes)
    assert (code, err) == (0, "")
    assert run.progress()["reason"] == "every learner has reached its limit"
    for name, agent in (("manifest.json", "impala"), ("manifest-r2d2.json", "r2d2")):
        manifest = run.manifest(name)
        assert (manifest["agent"], manifest["learner_step"]) == (agent, LIMIT)
    assert run.manifest("manifest-r2d2.json")["replay"] is None

    for agent in ("impala", "r2d2"):
        command = (sys.executable, "-m", "launch.evaluate", f"--run_dir={run.path}")
        result = subprocess.run(
            [*command, f"--agent={agent}", "--episodes=5"],
            capture_output=True,
            text=True,
            check=True,
        )
        assert result.stdout.startswith(f"{agent} on catch: mean return ")
        assert "over 5 episodes" in result.stdout


def test_impala_learns_from_what_only_r2d2_does(tmp_path: pathlib.Path) -> None:
    with Run(tmp_path / "run", *SHARED, "--act_with=r2d2", "--impala.learning_rate=0.001") as run:
        run.wait_until_learning()
        run.wait_until(lambda: _updates(run, "impala") >= LIMIT)
        learners = run.progress()["learners"]
        nodes = run.nodes()
        os.kill(run.pid, signal.SIGTERM)
        code, _, err = run.finish()
        assert all_gone(nodes)
    assert (code, err) == (0, "")
    assert math.isfinite(learners["impala"]["loss"])
    assert math.isfinite(learners["r2d2"]["loss"])
    assert learners["impala"]["parameter_lag"] == 0  # of parameters of its own that acted: none did
    assert run.manifest("manifest-impala.json")["learner_step"] >= LIMIT
