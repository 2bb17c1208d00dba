"""Whole runs on catch: they learn, stop, crash and go on as the documentation says."""

import csv
import json
import os
import pathlib
import signal
import subprocess
import sys
import time

import pytest

from tests.launch.runs import Run, all_gone

pytestmark = [pytest.mark.launchpad, pytest.mark.slow]

NEW = ("--agent=r2d2", "--env=catch", "--num_actors=8")
SOLVED = 0.9


def _rows(run_dir: pathlib.Path, log: str) -> list[dict[str, str]]:
    with (run_dir / "logs" / f"{log}.csv").open() as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def solved(tmp_path_factory: pytest.TempPathFactory) -> tuple[Run, tuple[int, str, str], bool]:
    """A run that ended at its step limit: what it printed, and whether all its processes went."""
    run = Run(
        tmp_path_factory.mktemp("runs") / "catch",
        *("--agent=r2d2", "--env=catch", "--num_actors=32", "--actors_per_node=16", "--seed=1"),
        *("--max_actor_steps=60000", "--evaluation_minutes=0.1", "--evaluation_episodes=10"),
    )
    run.wait_until_learning()
    nodes = run.nodes()
    run.wait_until(lambda: bool((run.progress() or {})["reason"]))
    ended = run.finish()
    return run, ended, all_gone(nodes)


def test_a_step_limit_ends_a_run_in_order(
    solved: tuple[Run, tuple[int, str, str], bool]
) -> None:
    run, (code, out, err), gone = solved
    assert (code, err, gone) == (0, "", True)
    assert "The run has ended: 60,000 actor steps were reached." in out
    assert f"python -m launch.train --run_dir={run.path} --resume" in out
    assert f"python -m launch.evaluate --run_dir={run.path}" in out
    assert "time left" in out

    manifest = run.manifest()
    assert manifest is not None
    assert 60_000 <= manifest["actor_steps"] < 70_000
    assert manifest["learner_step"] > 100
    assert manifest["replay_items"] > 200  # the estimate fits
    assert time.time() - manifest["replay_saved_at"] < 600
    assert json.loads((run.path / "config.json").read_text())["config"]["lstm_size"] == 64
    assert list((run.path / "tensorboard").glob("events*"))


def test_a_run_solves_catch_within_its_step_budget(
    solved: tuple[Run, tuple[int, str, str], bool]
) -> None:
    run, *_ = solved
    recent = float(_rows(run.path, "actor")[-1]["episode_return"])  # epsilons included
    evaluated = [float(row["episode_return"]) for row in _rows(run.path, "evaluator")]
    assert max([recent, *evaluated]) >= SOLVED


def test_every_actor_of_every_node_plays(
    solved: tuple[Run, tuple[int, str, str], bool]
) -> None:
    run, *_ = solved
    assert {int(row["actor"]) for row in _rows(run.path, "episodes")} == set(range(32))


def test_evaluate_plays_what_was_saved(solved: tuple[Run, tuple[int, str, str], bool]) -> None:
    run, *_ = solved
    result = subprocess.run(
        [sys.executable, "-m", "launch.evaluate", f"--run_dir={run.path}", "--episodes=40"],
        capture_output=True,
        text=True,
        check=True,
    )
    mean = float(result.stdout.split("mean return ")[1].split(" ")[0])
    assert "over 40 episodes" in result.stdout
    assert mean >= SOLVED


def test_resuming_a_run_that_reached_its_limit_ends_at_once(
    solved: tuple[Run, tuple[int, str, str], bool]
) -> None:
    before = solved[0].manifest()
    assert before is not None
    again = Run(solved[0].path, "--resume", f"--max_learner_steps={before['learner_step']}")
    code, _, err = again.finish(150)
    assert (code, err) == (0, "")
    after = again.manifest()
    assert after is not None
    assert after["learner_step"] == before["learner_step"]
    assert before["actor_steps"] <= after["actor_steps"]
    lines = (again.path / "logs" / "actor.csv").read_text().splitlines()
    assert [line.startswith("actor_steps,") for line in lines].count(True) == 1


def test_a_killed_run_goes_on_from_its_periodic_checkpoint(tmp_path: pathlib.Path) -> None:
    run = Run(tmp_path / "run", *NEW, "--checkpoint_minutes=0.05")
    run.wait_until(lambda: bool((m := run.manifest()) and m["replay"] and m["learner_step"] > 0))
    nodes = run.nodes()
    os.killpg(run.pid, signal.SIGKILL)
    run.finish()
    assert all_gone(nodes)
    before = run.manifest()
    assert before is not None

    resumed = Run(tmp_path / "run", "--resume")
    resumed.wait_until(lambda: bool(resumed.progress()))
    first = resumed.progress()
    assert first is not None
    for name in ("actor_steps", "episodes", "trained_steps", "walltime"):
        assert first["counts"][name] >= before[name] > 0
    assert first["counts"]["learner_steps"] >= before["learner_step"]
    resumed.wait_until(lambda: (resumed.progress() or {})["replay_size"] >= before["replay_items"])
    resumed.wait_until(
        lambda: (resumed.progress() or {})["counts"]["learner_steps"] > before["learner_step"]
    )

    nodes = resumed.nodes()
    os.killpg(resumed.pid, signal.SIGINT)  # as a terminal's Ctrl-C
    code, out, err = resumed.finish()
    assert (code, err) == (0, "")
    assert all_gone(nodes)
    assert "The run has ended: it was asked to stop." in out
    after = resumed.manifest()
    assert after is not None
    assert after["learner_step"] > before["learner_step"]
    assert after["walltime"] > before["walltime"]
    assert after["replay_saved_at"] > before["replay_saved_at"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_stop_in_the_first_seconds_leaves_nothing_behind(
    tmp_path: pathlib.Path, number: signal.Signals
) -> None:
    run = Run(tmp_path / "run", *NEW)
    run.wait_until(lambda: len(run.nodes()) >= 5)
    nodes = run.nodes()
    os.killpg(run.pid, number) if number == signal.SIGINT else os.kill(run.pid, number)
    code, out, err = run.finish()
    assert all_gone(nodes)
    assert (code, err) == (0, "")
    assert "Nothing was saved yet." in out


def test_sigterm_to_the_launcher_saves_and_stops(tmp_path: pathlib.Path) -> None:
    run = Run(tmp_path / "run", *NEW)
    run.wait_until_learning()
    nodes = run.nodes()
    os.kill(run.pid, signal.SIGTERM)
    code, out, err = run.finish()
    assert all_gone(nodes)
    assert (code, err) == (0, "")
    assert "Saved: the learner at update" in out


def test_nodes_do_not_outlive_a_killed_launcher(tmp_path: pathlib.Path) -> None:
    run = Run(tmp_path / "run", *NEW)
    run.wait_until_learning()
    nodes = run.nodes()
    os.kill(run.pid, signal.SIGKILL)
    assert all_gone(nodes)
    run.finish()


def test_a_killed_node_ends_the_run_and_is_named(tmp_path: pathlib.Path) -> None:
    run = Run(tmp_path / "run", *NEW)
    run.wait_until_learning()
    nodes = run.nodes()
    run.node("actor").kill()
    code, out, err = run.finish()
    assert all_gone(nodes)
    assert code == 1
    assert "The process of node actor was killed by SIGKILL." in err
    assert "Saved: the learner at update" in out  # the others were asked to end, not killed


def test_a_crash_shows_its_traceback(tmp_path: pathlib.Path) -> None:
    run_dir = tmp_path / "run"
    run_dir.mkdir()
    (run_dir / "logs").write_text("a file where the nodes want to make a folder")
    run = Run(run_dir, *NEW)
    run.wait_until(lambda: len(run.nodes()) >= 5)
    nodes = run.nodes()
    code, _, err = run.finish(150)
    assert all_gone(nodes)
    assert code == 1
    assert "node crashed:\nTraceback (most recent call last):" in err
    assert "FileExistsError" in err
    assert f"What each node printed is in {run_dir / 'nodes'}" in err
