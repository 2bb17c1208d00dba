"""Which actors share a process, whom they follow and what they play."""

from collections import Counter
from typing import Any

import numpy as np
import pytest

from run_folder import settings
from run_folder.settings import Crew

TWO = "catch,catch:large_rewards"
FOUR = "atari:pong,atari:breakout,atari:qbert,atari:boxing"


def _resolve(**given: Any) -> settings.Settings:
    values = dict(agent="r2d2,impala", env="catch", run_dir="/run", preset="local")
    return settings.resolve(values | given, {})


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (
            dict(num_actors=10, actors_per_node=3),
            [
                Crew("r2d2", (0, 1, 2), (0, 1, 2), 5, (0, 0, 0)),
                Crew("r2d2", (3, 4), (3, 4), 5, (0, 0)),
                Crew("impala", (5, 6, 7), (0, 1, 2), 5, (0, 0, 0)),
                Crew("impala", (8, 9), (3, 4), 5, (0, 0)),
            ],
        ),
        (
            dict(num_actors=7, actors_per_node=32),
            [
                Crew("r2d2", (0, 1, 2, 3), (0, 1, 2, 3), 4, (0, 0, 0, 0)),
                Crew("impala", (4, 5, 6), (0, 1, 2), 3, (0, 0, 0)),
            ],
        ),
        (
            dict(num_actors=3, actors_per_node=2, act_with="impala"),
            [
                Crew("impala", (0, 1), (0, 1), 3, (0, 0)),
                Crew("impala", (2,), (2,), 3, (0,)),
            ],
        ),
        (
            dict(num_actors=2, actors_per_node=2, act_with="impala,r2d2"),
            [Crew("impala", (0,), (0,), 1, (0,)), Crew("r2d2", (1,), (0,), 1, (0,))],
        ),
        (
            dict(agent="r2d2", num_actors=3, actors_per_node=2),
            [Crew("r2d2", (0, 1), (0, 1), 3, (0, 0)), Crew("r2d2", (2,), (2,), 3, (0,))],
        ),
        (
            dict(agent="r2d2", env=TWO, num_actors=5, actors_per_node=2),
            [
                Crew("r2d2", (0, 2), (0, 2), 5, (0, 0)),
                Crew("r2d2", (4, 1), (4, 1), 5, (0, 1)),
                Crew("r2d2", (3,), (3,), 5, (1,)),
            ],
        ),
        (
            dict(env=TWO, num_actors=9, actors_per_node=3),
            [
                Crew("r2d2", (0, 2, 4), (0, 2, 4), 5, (0, 0, 0)),
                Crew("r2d2", (1, 3), (1, 3), 5, (1, 1)),
                Crew("impala", (5, 7, 6), (0, 2, 1), 4, (0, 0, 1)),
                Crew("impala", (8,), (3,), 4, (1,)),
            ],
        ),
    ],
)
def test_actors_are_spread_over_agents_then_tasks_then_processes(
    given: dict[str, Any], expected: list[Crew]
) -> None:
    assert _resolve(**given).crews() == expected


@pytest.mark.parametrize("agent", ["r2d2", "r2d2,impala"])
@pytest.mark.parametrize(
    ("env", "num_tasks", "num_actors", "actors_per_node"),
    [(TWO, 2, 16, 5), (FOUR, 4, 23, 8), (FOUR, 4, 8, 1), ("atari57", 57, 256, 32)],
)
def test_each_acting_agent_plays_every_task_evenly_with_policies_of_its_whole_range(
    agent: str, env: str, num_tasks: int, num_actors: int, actors_per_node: int
) -> None:
    run = _resolve(agent=agent, env=env, num_actors=num_actors, actors_per_node=actors_per_node)
    made = run.crews()
    assert sorted(actor for crew in made for actor in crew.actors) == list(range(num_actors))
    assert all(len(crew.actors) <= actors_per_node for crew in made)
    for name in run.acting:
        mine = [crew for crew in made if crew.agent == name]
        ranks = np.array([rank for crew in mine for rank in crew.ranks])
        tasks = np.array([task for crew in mine for task in crew.tasks])
        assert {crew.num_actors for crew in mine} == {len(ranks)}
        assert sorted(ranks) == list(range(len(ranks)))
        counts = Counter(tasks)
        assert set(counts) == set(range(num_tasks))
        assert max(counts.values()) - min(counts.values()) <= 1
        for task in range(num_tasks):  # its epsilons lie apart by no more than there are tasks
            of_task = np.sort(ranks[tasks == task])
            assert of_task[0] < num_tasks
            assert of_task[-1] >= len(ranks) - num_tasks
            assert set(np.diff(of_task)) <= {num_tasks}


def test_a_process_holds_as_few_games_as_can_be_and_equal_ones_side_by_side() -> None:
    made = _resolve(agent="r2d2", env=FOUR, num_actors=32, actors_per_node=8).crews()
    assert [set(crew.tasks) for crew in made] == [{0}, {1}, {2}, {3}]
    for crew in _resolve(agent="r2d2", env=FOUR, num_actors=32, actors_per_node=12).crews():
        assert list(crew.tasks) == sorted(crew.tasks)
        assert len(set(crew.tasks)) <= 2
