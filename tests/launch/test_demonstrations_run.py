"""Whole runs that learn from demonstrations."""

import os
import pathlib

import pytest

from run_folder import settings
from tests.launch.runs import Run, forked

pytestmark = pytest.mark.launchpad

SOLVED = 0.9  # of at most 1
BUDGET = 20_000  # updates, many times what it takes


def test_catch_is_solved_from_aimless_episodes_alone_and_the_run_goes_on_with_actors(
    tmp_path: pathlib.Path,
) -> None:
    """Nobody acts until it is resumed; then actors do, whose steps alone are counted."""
    folder = tmp_path / "demos"
    bot = ("--policy=tests.launch.bots:aimless", "--env=catch", f"--folder={folder}")
    outcome = forked().run("launch.record", *bot, "--episodes=300")
    assert outcome.code == 0, outcome.err
    flags = (
        "--agent=r2d2",
        "--env=catch",
        f"--demonstrations={os.path.relpath(folder)}",
        "--max_actor_steps=0",
        f"--max_learner_steps={BUDGET}",
        f"--until_return={SOLVED}",
        "--evaluation_episodes=50",
        "--evaluation_minutes=0.05",
        *("--r2d2.burn_in=0", "--r2d2.length=12", "--r2d2.period=12"),  # whole episodes
    )
    with Run(tmp_path / "run", *flags) as run:
        code, _, err = run.finish()
        assert code == 0, err
        returns = [float(row["episode_return"]) for row in run.rows("evaluator")]
        assert returns[-1] >= SOLVED
        assert (run.count("actor_steps"), run.count("episodes")) == (0, 0)
        assert settings.load(tmp_path / "run").demonstrations == str(folder)
        updates = run.count("learner_steps")
        assert 0 < updates < BUDGET
    again = ("--resume", "--max_actor_steps=8000", "--num_actors=8", "--demo_fraction=1/4")
    with Run(tmp_path / "run", *again, "--until_return=inf", "--max_learner_steps=1000000") as run:
        run.wait_until(lambda: run.count("learner_steps") > updates)
        run.node("demonstrator/0").kill()  # and it is started again
        code, _, err = run.finish()
        assert code == 0, err
        assert run.count("learner_steps") > updates
        assert 8_000 <= run.count("actor_steps") < 12_000
        assert {int(row["actor"]) for row in run.rows("episodes")} == set(range(8))
