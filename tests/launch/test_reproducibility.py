"""The same seed gives an actor's stream again, bit for bit."""

import numpy as np
import pytest
import tensorflow as tf

from agents import actor
from agents.environment_loop import VectorEnvironmentLoop
from environments import suites
from run_folder import building
from run_folder.settings import Settings
from tests.agents.recording import Recorder, Source
from tests.run_folder import saved_runs

STEPS = 60


def _run(env: str, seed: int) -> Settings:
    return saved_runs.resolve(env=env, seed=seed, num_actors=4)


def _play(run: Settings, actors: tuple[int, ...]) -> Recorder:
    """All that the actors of one node write, from the environment's first row on."""
    agent = building.make_agent(run, "r2d2")
    spec = building.environment_spec(run)
    tf.random.set_seed(building.seed_of(run, "network"))
    network = agent.make_network(spec)
    recorder = Recorder()
    seed = building.seed_of(run, "policy", actors[0])
    played = agent.make_network(spec)
    player = actor.make_actor(
        agent,
        played,
        agent.make_policy(played, np.asarray(actors), run.num_actors, seed),
        num_environments=len(actors),
        source=Source([v.numpy() for v in network.variables]),
        writer=recorder,
    )
    player.update(wait=True)
    environments = suites.make(
        run.env,
        len(actors),
        seed=building.seed_of(run, "environment", actors[0]),
        full_action_space=run.full_action_space,
    )
    loop = VectorEnvironmentLoop(environments, player, [run.env] * len(actors))
    for _ in range(STEPS):
        loop.step()
    environments.close()
    return recorder


def _equal(one: Recorder, other: Recorder) -> bool:
    pairs = zip(
        tf.nest.flatten([tuple(row) for row in one.rows]),
        tf.nest.flatten([tuple(row) for row in other.rows]),
        strict=True,
    )
    return all(np.array_equal(x, y) for x, y in pairs)


@pytest.mark.parametrize("env", ["catch", "atari:pong"])
def test_an_actors_stream_follows_from_the_seed(env: str) -> None:
    stream = _play(_run(env, seed=3), (0, 1))
    again = _play(_run(env, seed=3), (0, 1))
    assert len(stream.rows) == STEPS
    assert _equal(stream, again)
    assert len(np.unique(stream.column("action"))) > 1  # it explored

    other_seed = _play(_run(env, seed=4), (0, 1))
    assert not _equal(stream, other_seed)
    other_node = _play(_run(env, seed=3), (2, 3))
    assert not np.array_equal(stream.column("action"), other_node.column("action"))
