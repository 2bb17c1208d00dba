"""Whole runs in which R2D2 and IMPALA learn from one stream."""

import math
import pathlib

import pytest

from tests.commands import Commands
from tests.launch.runs import Run

pytestmark = pytest.mark.launchpad

SHARED = ("--agent=r2d2,impala", "--env=catch", "--num_actors=8", "--evaluation_episodes=0")
LIMIT = 40

# R2D2's own ladder leaves most actors all but greedy, and no weight corrects for an action that is
# never taken: IMPALA's policy moves onto such actions and stays there. So every actor explores, and
# IMPALA's policy is kept open until it has seen what each action is worth.
EXPLORING = (
    "--r2d2.epsilon_base=0.8",
    "--r2d2.epsilon_alpha=1",
    "--impala.entropy_cost=0.03",
    # Short unrolls and a high rate: catch asks for little memory, and the budget is small.
    "--impala.length=16",
    "--impala.forget_bias=1",
    "--impala.learning_rate=5e-3",
)
SOLVED = 0.9  # of at most 1; IMPALA is evaluated as it acts, so a sampled slip counts
BUDGET = 300_000  # actor steps, many times what it takes


@pytest.mark.parametrize(
    ("acting", "learners"), [("r2d2", 1), pytest.param("impala", 2, marks=pytest.mark.slow)]
)
def test_both_agents_solve_catch_from_a_stream_that_one_acted(
    tmp_path: pathlib.Path, acting: str, learners: int
) -> None:
    """Each learns in one process, or in two that learn as one. What both reach ends the run."""
    flags = (
        "--agent=r2d2,impala",
        "--env=catch",
        f"--act_with={acting}",
        f"--learners_per_agent={learners}",
        "--paced_by=r2d2",  # the slower one, so that a busy machine teaches as much
        "--num_actors=16",
        "--evaluation_episodes=50",
        "--evaluation_minutes=0.05",
        f"--until_return={SOLVED}",
        f"--max_actor_steps={BUDGET}",
        *EXPLORING,
    )
    with Run(tmp_path / "run", *flags) as run:
        run.wait_until_learning()
        code, out, err = run.end()
        for agent in ("r2d2", "impala"):
            evaluated = [float(row["episode_return"]) for row in run.rows(f"evaluator-{agent}")]
            assert max(evaluated) >= SOLVED
        said = run.progress()["learners"]
        lasted = run.manifest()["walltime"] / 60
    assert (code, err) == (0, "")
    assert "The run has ended: the evaluator's mean return by " in out
    assert run.manifest()["replay_items"] > 0  # as at any limit
    assert " --resume --until_return=inf\n" in out
    assert all(math.isfinite(said[agent]["loss"]) for agent in ("r2d2", "impala"))
    other = {"r2d2": "impala", "impala": "r2d2"}[acting]
    assert said[other]["parameter_lag"] == 0  # of parameters of its own that acted: none did
    assert run.manifest("manifest-impala.json")["learner_step"] >= LIMIT

    limit = f"--max_minutes={lasted + 0.1:g}"  # of both launches
    with Run(tmp_path / "run", "--resume", "--until_return=inf", limit) as run:
        code, out, err = run.finish()
    assert (code, err) == (0, "")
    assert f"The run has ended: {limit} was reached." in out
    assert run.manifest()["walltime"] >= 60 * float(limit.partition("=")[2])  # or is not refused


@pytest.mark.slow
def test_a_finished_learner_does_not_stop_the_other(
    tmp_path: pathlib.Path, commands: Commands
) -> None:
    flags = (
        *SHARED,
        "--paced_by=impala",
        f"--max_learner_steps={LIMIT}",
        "--impala.batch_size=4",
        "--impala.queue_size=6",
        "--r2d2.samples_per_insert=0.25",
    )
    with Run(tmp_path / "run", *flags) as run:
        run.wait_until(lambda: run.manifest().get("learner_step") == LIMIT)
        assert run.manifest()["agent"] == "impala"
        assert run.progress()["learners"]["r2d2"]["learner_steps"] < LIMIT / 2
        code, _, err = run.end()
    assert (code, err) == (0, "")
    assert run.progress()["reason"] == "every learner has reached its limit"
    for name, agent in (("manifest.json", "impala"), ("manifest-r2d2.json", "r2d2")):
        manifest = run.manifest(name)
        assert (manifest["agent"], manifest["learner_step"]) == (agent, LIMIT)
    assert run.manifest("manifest-r2d2.json")["replay"] is None

    for agent in ("impala", "r2d2"):
        how = (f"--run_dir={run.path}", f"--agent={agent}", "--episodes=5")
        played = commands.run("launch.evaluate", *how)
        assert played.out.startswith(f"{agent} on catch: mean return "), played.err
        assert "over 5 episodes" in played.out
