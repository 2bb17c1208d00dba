"""When evaluations end a run, against the sentence that says so."""

import math

import numpy as np
import pytest

from launch.graph.goal import Goal

NAN = math.nan


def _evaluation(mean_return: float, **of_tasks: float) -> dict[str, float]:
    tasks = {f"return/{task}": value for task, value in of_tasks.items()}
    return dict(learner_steps=1_200, episode_return=mean_return, **tasks)


@pytest.mark.parametrize("agents", [("r2d2",), ("r2d2", "impala")])
@pytest.mark.parametrize("wanted", [1, 2, 3])
def test_a_run_ends_with_so_many_in_a_row_of_all_agents_at_the_same_time(
    wanted: int, agents: tuple[str, ...]
) -> None:
    """Random evaluations, beside a look at all that each has had so far."""
    rng = np.random.default_rng(wanted)
    goal = Goal(agents, 0.5, wanted)
    had: dict[str, list[float]] = {agent: [] for agent in agents}
    ended = []
    for i in range(300):
        agent = agents[i % len(agents)]
        had[agent].append(float(rng.choice([0.4, 0.5, 0.6, NAN], p=[0.2, 0.3, 0.45, 0.05])))
        newest = [each[-wanted:] for each in had.values()]
        ended.append(all(sum(value >= 0.5 for value in few) == wanted for few in newest))
        assert bool(goal.take(agent, _evaluation(had[agent][-1]))) == ended[-1]
    assert True in ended
    assert False in ended


@pytest.mark.parametrize(
    ("of_tasks", "ends"),
    [
        (dict(a=18.0, b=19.0), True),
        (dict(a=17.0, b=40.0), False),  # though the mean over both is more
        (dict(a=NAN, b=40.0), False),  # cannot be played
    ],
)
def test_each_task_has_to_be_there(of_tasks: dict[str, float], ends: bool) -> None:
    assert bool(Goal(["r2d2"], 18.0, 1).take("r2d2", _evaluation(28.5, **of_tasks))) == ends


@pytest.mark.parametrize("until", [None, math.inf])
def test_without_a_return_no_evaluation_ends_a_run(until: float | None) -> None:
    goal = Goal(["r2d2"], until, 1)
    assert goal.take("r2d2", _evaluation(math.inf)) == ""
    assert goal.progress() is None


def test_the_sentence_says_what_was_reached() -> None:
    assert Goal(["r2d2"], 18.0, 1).take("r2d2", _evaluation(18.4321)) == (
        "the evaluator's mean return was 18.43 at update 1,200, at least --until_return=18"
    )
    goal = Goal(["r2d2", "impala"], -0.5, 2)
    for agent in ("impala", "r2d2", "impala"):
        assert goal.take(agent, _evaluation(9.0, a=-0.5, b=18.5)) == ""
    assert goal.take("r2d2", _evaluation(9.0, a=-0.25, b=18.25)) == (
        "the evaluator's mean return of each task by r2d2 was -0.25 or more at update 1,200, "
        "at least --until_return=-0.5, 2 evaluations in a row"
    )


def test_progress_counts_the_agent_that_has_fewest() -> None:
    goal = Goal(["r2d2", "impala"], 0.5, 2)
    told = dict(until_return=0.5, evaluations=2)
    assert goal.progress() == told | dict(in_a_row=0, is_reached=False)
    for agent in ("r2d2", "r2d2", "r2d2", "impala"):
        goal.take(agent, _evaluation(0.5))
    assert goal.progress() == told | dict(in_a_row=1, is_reached=False)
    goal.take("impala", _evaluation(0.5))
    assert goal.progress() == told | dict(in_a_row=2, is_reached=True)
