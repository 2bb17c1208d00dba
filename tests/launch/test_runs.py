"""Whole runs on catch: they learn, stop, crash and go on as the documentation says."""

import json
import math
import os
import pathlib
import signal
from collections.abc import Iterator
from typing import NamedTuple

import pytest

from run_folder import best
from run_folder.layout import RunFolder
from tests.commands import Commands
from tests.launch.runs import Run, all_gone
from tests.rows import steps_on_tensorboard

pytestmark = pytest.mark.launchpad

SMALL = ("--agent=r2d2", "--env=catch", "--num_actors=8", "--evaluation_episodes=0")
SOLVED = 0.9


class Ended(NamedTuple):
    """A run that is over."""

    run: Run
    code: int
    out: str
    err: str


@pytest.fixture(scope="module")
def solved(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ended]:
    """A run that ended at its step limit."""
    with Run(
        tmp_path_factory.mktemp("runs") / "catch",
        *("--agent=r2d2", "--env=catch", "--num_actors=32", "--actors_per_node=16", "--seed=1"),
        *("--max_actor_steps=60000", "--evaluation_minutes=0.1", "--evaluation_episodes=10"),
    ) as run:
        run.wait_until_learning()
        yield Ended(run, *run.end())


def test_a_step_limit_ends_a_run_in_order(solved: Ended) -> None:
    assert (solved.code, solved.err) == (0, "")
    assert "time left" in solved.out
    assert "The run has ended: 60,000 actor steps were reached." in solved.out
    assert f"python -m launch.train --run_dir={solved.run.path} --resume" in solved.out
    assert f"python -m launch.evaluate --run_dir={solved.run.path}" in solved.out

    manifest = solved.run.manifest()
    assert 60_000 <= manifest["actor_steps"] < 70_000
    assert manifest["learner_step"] > 100
    assert manifest["replay_items"] > 200  # its estimate fits: it was saved too
    config = json.loads((solved.run.path / "config.json").read_text())["configs"]["r2d2"]
    assert config["lstm_size"] == 64
    assert RunFolder(solved.run.path).events()


def test_a_run_solves_catch_within_its_step_budget(solved: Ended) -> None:
    acted = [float(row["episode_return"]) for row in solved.run.rows("actor")]
    recent = [value for value in acted if not math.isnan(value)][-1]  # epsilons included
    evaluated = [float(row["episode_return"]) for row in solved.run.rows("evaluator")]
    assert max([recent, *evaluated]) >= SOLVED


def test_every_actor_of_every_node_plays(solved: Ended) -> None:
    assert {int(row["actor"]) for row in solved.run.rows("episodes")} == set(range(32))


def test_evaluate_plays_what_was_saved(solved: Ended, commands: Commands) -> None:
    played = commands.run("launch.evaluate", f"--run_dir={solved.run.path}", "--episodes=40")
    assert "over 40 episodes" in played.out, played.err
    assert float(played.out.split("mean return ")[1].split(" ")[0]) >= SOLVED


def test_the_best_that_was_evaluated_is_kept_and_plays(solved: Ended, commands: Commands) -> None:
    rows = solved.run.rows("evaluator")
    returns = [float(row["episode_return"]) for row in rows]
    kept = best.read(solved.run.path / "checkpoints", "r2d2")
    if kept is None:
        assert not rows  # a machine so fast that nothing was evaluated
        return
    row = rows[returns.index(max(returns))]
    assert (kept.score, kept.learner_step) == (max(returns), int(row["learner_steps"]))
    played = commands.run(
        "launch.evaluate", f"--run_dir={solved.run.path}", "--checkpoint=best", "--episodes=2"
    )
    assert f"Every episode, of update {kept.learner_step:,}: " in played.out, played.err


COUNTS = ("actor_steps", "episodes", "trained_steps", "walltime")


def test_nodes_end_with_a_killed_launcher_and_a_run_goes_on_from_its_periodic_checkpoint(
    tmp_path: pathlib.Path,
) -> None:
    with Run(tmp_path / "run", *SMALL, "--checkpoint_minutes=0.05") as run:
        run.wait_until(lambda: bool(run.manifest().get("replay")))
        run.wait_until(lambda: all(run.manifest()[name] > 0 for name in (*COUNTS, "learner_step")))
        nodes = run.nodes()
        os.kill(run.pid, signal.SIGKILL)
        assert all_gone(nodes)
    before = run.manifest()
    (tmp_path / "run" / "nodes" / "progress.json").unlink()  # of the run that was killed

    with Run(tmp_path / "run", "--resume", "--checkpoint_minutes=10") as run:
        run.wait_until(lambda: bool(run.progress()))
        first = run.progress()["counts"]
        for name in COUNTS:
            assert first[name] >= before[name] > 0
        assert first["learner_steps"] >= before["learner_step"]
        run.wait_until(lambda: run.progress()["replay_size"] >= before["replay_items"])
        run.wait_until(lambda: run.count("learner_steps") > before["learner_step"])

        for node in run.nodes():
            node.send_signal(signal.SIGINT)  # as a terminal's Ctrl-C, which only the launcher hears
        learned = run.count("learner_steps")
        run.wait_until(lambda: run.count("learner_steps") > learned)
        # As `timeout` does; the nodes are in groups of their own.
        code, out, err = run.end(signal.SIGTERM, group=True)
    assert (code, err) == (0, "")
    assert "The run has ended: it was asked to stop." in out
    for log in ("actor", "learner-r2d2"):
        for counter in ("actor_steps", "learner_steps", "walltime"):
            counts = [float(row[counter]) for row in run.rows(log)]
            assert counts == sorted(counts), (log, counter)
    for tag, steps in steps_on_tensorboard(run.path).items():
        assert len(set(steps)) == len(steps), tag
    after = run.manifest()
    assert after["learner_step"] > before["learner_step"]
    assert after["walltime"] > before["walltime"]
    assert after["replay_saved_at"] > before["replay_saved_at"]


@pytest.mark.parametrize(
    "number",
    [
        pytest.param(signal.SIGINT, id="ctrl-c"),
        pytest.param(signal.SIGHUP, marks=pytest.mark.slow, id="closed terminal"),
    ],
)
def test_a_stop_in_the_first_seconds_leaves_nothing_behind(
    tmp_path: pathlib.Path, number: int
) -> None:
    with Run(tmp_path / "run", *SMALL) as run:
        run.wait_until(lambda: len(run.nodes()) >= 4)
        code, out, err = run.end(number, group=number == signal.SIGINT)
        saved = run.manifest()  # a fast machine has learned by then
    assert (code, err) == (0, "")
    assert "The run has ended: it was asked to stop." in out
    assert ("Nothing was saved yet." in out) == (not saved)


def test_a_killed_node_ends_the_run_and_is_named(tmp_path: pathlib.Path) -> None:
    with Run(tmp_path / "run", *SMALL, "--restarts=0") as run:
        run.wait_until_learning()
        run.node("actor/0").kill()
        code, out, err = run.end()
    assert code == 1
    assert "The process of node actor/0 was killed by SIGKILL." in err
    assert "Saved: the learner at update" in out  # the others were asked to end


def test_a_crash_shows_its_traceback(tmp_path: pathlib.Path) -> None:
    diverging = ("--r2d2.learning_rate=1e12", "--r2d2.min_replay_size=20", "--restarts=0")
    with Run(tmp_path, *SMALL, *diverging) as run:
        run.wait_until(lambda: len(run.nodes()) >= 4)
        code, _, err = run.end()
    assert code == 1
    assert "node crashed:\nTraceback (most recent call last):" in err
    assert "NotFiniteError: Update" in err
    assert f"What each node printed is in {tmp_path / 'nodes'}" in err
