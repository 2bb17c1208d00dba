"""What an actor's node makes of its crew: whose environments, whose epsilons, whose items.

And how it ends, as an evaluator's does, when one of its environments is broken.
"""

import pathlib
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import reverb
from gymnasium.vector import VectorEnv, VectorWrapper

from agents.finite import NotFiniteError
from environments import suites
from launch.graph import actor_node, evaluator_node, process, replay_node
from replay.structures import Header
from run_folder import building, settings
from run_folder.crews import crews
from run_folder.episodes import Ended
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

    def get_counts(self) -> dict[str, float]:
        return {"actor_steps": 0, "walltime": 0.0}


@pytest.fixture(autouse=True)
def _in_no_program(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "enter", lambda *_: None)
    for module in (actor_node, evaluator_node):
        monkeypatch.setattr(module, "lp", SimpleNamespace(wait_for_stop=lambda seconds: False))
    monkeypatch.setattr(actor_node, "REPORT_SECONDS", 0.05)


def _run(run_dir: str = "/run", **changes: Any) -> tuple[settings.Settings, Source]:
    """A small run, and a learner of it whose parameters stay as they are."""
    given: dict[str, Any] = dict(
        agent="impala", env=",".join(TASKS), run_dir=run_dir, preset="local", **changes
    )
    run = settings.resolve(given | dict(num_actors=10, actors_per_node=4), {"impala": SMALL})
    network = building.make_agents(run)["impala"].make_network(building.environment_spec(run))
    return run, Source([variable.numpy() for variable in network.variables])


def test_actors_play_and_report_and_write_their_own_tasks() -> None:
    run, source = _run()
    crew = crews(run)[1]  # the last of one task and the first of the other
    assert (crew.actors, crew.tasks) == ((8, 1, 3, 5), (0, 1, 1, 1))
    server = reverb.Server(replay_node.make_tables(run, 0))
    client = reverb.Client(f"localhost:{server.port}")
    coordinator = Coordinator()

    actor_node.ActorNode(run, crew, source, client, coordinator).run()

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


class Broken(VectorWrapper):
    """The environment of row 2 pays what is not a number, with its fifth step."""

    _step = 0

    def step(self, actions: np.ndarray) -> tuple[Any, ...]:
        observations, rewards, *rest = self.env.step(actions)
        self._step += 1
        if self._step == 5:
            rewards[2] = np.nan
        return observations, rewards, *rest


@pytest.fixture
def _broken(monkeypatch: pytest.MonkeyPatch) -> None:
    make_each = suites.make_each

    def broken(*args: Any, **kwargs: Any) -> VectorEnv:
        return Broken(make_each(*args, **kwargs))

    monkeypatch.setattr(suites, "make_each", broken)


@pytest.mark.usefixtures("_broken")
def test_an_actor_that_is_paid_what_is_not_a_number_ends_before_that_is_stored() -> None:
    run, source = _run()
    server = reverb.Server(replay_node.make_tables(run, 0))
    client = reverb.Client(f"localhost:{server.port}")
    node = actor_node.ActorNode(run, crews(run)[1], source, client, Coordinator())
    sentence = "^catch:large_rewards, environment 3 of 4, gave the reward nan: rewards must be"
    with pytest.raises(NotFiniteError, match=sentence):
        node.run()
    assert client.server_info()["impala"].current_size <= 4  # of the first rows, if any


@pytest.mark.usefixtures("_broken")
def test_so_does_an_evaluator(tmp_path: pathlib.Path) -> None:
    run, source = _run(str(tmp_path), evaluation_minutes=1e-3, evaluation_episodes=2)
    node = evaluator_node.EvaluatorNode(run, "impala", source, Coordinator())
    sentence = "^catch:large_rewards, environment 3 of 4, gave the reward nan: rewards must be"
    with pytest.raises(NotFiniteError, match=sentence):
        node.run()
