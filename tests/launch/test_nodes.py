"""What an actor's node makes of its crew: whose environments, whose epsilons, whose items."""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import reverb

from launch import nodes, process, settings
from launch.crews import crews
from launch.episodes import Ended
from replay.structures import Header
from tests.agents.recording import Source

TASKS = ("catch", "catch:large_rewards")
SMALL = {"lstm_size": "8", "length": "4", "queue_size": "10000"}
ENOUGH = 60  # episodes


class Coordinator:
    """Stands for the coordinator's node: ends a run after some episodes."""

    def __init__(self) -> None:
        self.steps = 0
        self.ended: list[Ended] = []

    def report_steps(self, steps: int, episodes: Sequence[Ended], lost: int) -> bool:
        assert lost == 0
        self.steps += steps
        self.ended += episodes
        return len(self.ended) >= ENOUGH

    def should_stop(self) -> bool:
        return False


@pytest.fixture(autouse=True)
def _in_no_program(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "enter", lambda *_: None)
    monkeypatch.setattr(nodes, "lp", SimpleNamespace(wait_for_stop=lambda seconds: False))
    monkeypatch.setattr(nodes, "REPORT_SECONDS", 0.05)


def test_actors_play_and_report_and_write_their_own_tasks() -> None:
    given: dict[str, Any] = dict(
        agent="impala", env=",".join(TASKS), run_dir="/run", preset="local"
    )
    run = settings.resolve(given | dict(num_actors=10, actors_per_node=4), {"impala": SMALL})
    crew = crews(run)[1]  # the last of one task and the first of the other
    assert (crew.actors, crew.tasks) == ((8, 1, 3, 5), (0, 1, 1, 1))
    network = nodes.make_agents(run)["impala"].make_network(nodes.environment_spec(run))
    source = Source([variable.numpy() for variable in network.variables])
    server = reverb.Server(nodes.make_tables(run, 0))
    client = reverb.Client(f"localhost:{server.port}")
    coordinator = Coordinator()

    nodes.ActorNode(run, crew, source, client, coordinator).run()

    task_of = dict(zip(crew.actors, crew.tasks, strict=True))
    assert {index for index, *_ in coordinator.ended} == set(crew.actors)
    for index, task, episode_return, length in coordinator.ended:
        assert (task, abs(episode_return)) == (task_of[index], (1, 1_000)[task])
        assert length == 9
    assert coordinator.steps >= 9 * len(coordinator.ended)

    written = set()
    for sample in client.sample(
        "impala",
        num_samples=client.server_info()["impala"].current_size,
        emit_timesteps=False,
        unpack_as_table_signature=True,
    ):
        header = Header(*np.ravel(sample.data.header))
        written.add((int(header.actor), int(header.task)))
    assert written == set(task_of.items())
