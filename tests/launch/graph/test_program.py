"""A run's program on one machine: as many nodes as were announced, and their addresses."""

from typing import Any

import pytest

from launch.graph import program
from run_folder import settings


def _run(**given: Any) -> settings.Settings:
    values = dict(agent="r2d2", env="catch", run_dir="/run", preset="local")
    return settings.resolve(values | given, {})


@pytest.mark.parametrize(
    ("given", "labels"),
    [
        (
            dict(num_actors=5, actors_per_node=2),
            "replay/0 coordinator/0 learner/0 actor/0 actor/1 actor/2 evaluator/0",
        ),
        (
            dict(agent="r2d2,impala", num_actors=4, actors_per_node=2, num_replay_shards=2),
            "replay/0 replay/1 coordinator/0 learner/0 learner/1 actor/0 actor/1 "
            "evaluator/0 evaluator/1",
        ),
        (
            dict(agent="r2d2,impala", num_actors=2, actors_per_node=2, learners_per_agent=3),
            "replay/0 coordinator/0 learner/0 learner/1 learner/2 learner/3 learner/4 learner/5 "
            "actor/0 actor/1 evaluator/0 evaluator/1",
        ),
        (
            dict(agent="r2d2,impala", num_actors=1, act_with="r2d2", colocate_learners=True)
            | dict(evaluation_episodes=0),
            "replay/0 coordinator/0 learner/0 actor/0",
        ),
    ],
)
def test_a_run_has_the_nodes_that_are_announced(given: dict[str, Any], labels: str) -> None:
    run = _run(**given)
    nodes = program.local_nodes(program.make_program(run, {}))
    assert list(nodes) == labels.split()
    assert run.num_nodes() == len(nodes)


def test_servers_have_ports_of_their_own() -> None:
    made = program.make_program(_run(agent="r2d2,impala", num_replay_shards=2, num_actors=4), {})
    program.local_nodes(made)
    addresses = [a.resolve() for node in made.get_all_nodes() for a in node.addresses]
    assert len(addresses) == len(set(addresses)) == 5  # two shards, the coordinator, two learners
