"""Actions that are vectors, from the policy through replay to the learner; STAC's too."""

from collections.abc import Iterator
from typing import Any

import acme
import numpy as np
import pytest
from acme import specs

from agents.actor import make_evaluator
from agents.contract import Agent
from agents.environment_loop import VectorEnvironmentLoop
from agents.impala import agent as impala
from agents.impala.distributions import squashed
from agents.in_process import InProcess
from agents.popart import agent as popart
from agents.single_process import SingleProcessAgent
from agents.stac import agent as stac
from environments import suites
from environments.dm import make_environment_spec
from r2d2 import agent as r2d2
from replay.structures import NetworkInput
from tests.agents.reaching import HIGH, LOW
from tests.agents.recording import Episodes, Recorder, run_episodes
from tests.batches import environment_spec
from tests.small_agents import IMPALA, small_config

ENV = "tests.agents.reaching:Reach"
BOUNDED = specs.BoundedArray((2,), np.float32, LOW, HIGH, "action")
OF_PAIRS = environment_spec((3,))._replace(actions=BOUNDED)


def _agents() -> Iterator[Agent]:
    small = {**IMPALA, "length": 6, "period": 2, "life_loss": False}
    yield impala.make(impala.Config(**small))
    yield stac.make(stac.Config(**small, head_hidden_sizes=(8,), num_heads=2), "stacx")


@pytest.mark.parametrize("agent", _agents(), ids=lambda agent: agent.name)
def test_the_actors_log_probability_is_the_learners(agent: Agent) -> None:
    """Unrolls overlap, the core sees the previous action, and no update was made yet."""
    process = InProcess(agent, make_environment_spec(ENV), tasks=np.zeros(2, int), seed=0)
    loop = VectorEnvironmentLoop(suites.make(ENV, 2, seed=0), process.actor, [ENV, ENV])
    for _ in range(20):
        loop.step()
    ready = process.learner._batches.next(60.0)
    assert ready is not None
    batch = ready.batch
    update: Any = process.learner._update
    evaluated = update.evaluate(batch)
    evaluation = evaluated if agent.name == "impala" else evaluated[0][0]
    real = batch.mask.numpy() > 0
    assert 0 < (~real).sum() < real.sum() > 10
    np.testing.assert_allclose(evaluation.log_ratio.numpy()[real], 0, atol=1e-3)
    assert np.std(batch.log_probability.numpy()[real]) > 0.1
    assert (np.abs(batch.action.numpy()[real]) > 1e-3).all()


def test_the_environment_is_given_what_is_squashed_and_replay_what_is_not() -> None:
    agent, recorder = impala.make(small_config("impala", log_sigma_min=0.0)), Recorder()
    network = agent.make_network(OF_PAIRS)
    actor = make_evaluator(agent, network, num_environments=2, seed=0, writer=recorder)
    given = actor.act(np.ones((2, 3), np.float32), np.zeros(2, np.uint8), np.zeros(2, np.uint8))
    actor.observe(np.zeros(2), np.ones(2))
    (stored,) = recorder.column("action")
    assert stored.dtype == given.dtype == np.float32
    np.testing.assert_array_equal(given, squashed(stored, BOUNDED))
    assert (given > LOW).all()
    assert (given < HIGH).all()


def test_evaluation_acts_by_the_mean_and_actors_around_it() -> None:
    agent = impala.make(small_config("impala"))
    network = agent.make_network(OF_PAIRS)
    inputs = _inputs(50, previous=0.3)
    state = network.initial_state(50)
    policy = network.step(inputs, state)[0].policy
    evaluated = agent.make_evaluation_policy(network, 0)(inputs, state)
    np.testing.assert_allclose(evaluated.action, policy.mean, atol=1e-6)
    acted = agent.make_policy(network, np.arange(50), 50, 0)(inputs, state)
    assert (np.abs(acted.action - policy.mean) > 1e-4).all()
    np.testing.assert_allclose(
        acted.log_probability, policy.log_probability(acted.action), atol=1e-4
    )


def _inputs(size: int, previous: float) -> NetworkInput:
    observation = np.random.default_rng(0).normal(size=(size, 3)).astype(np.float32)
    previous_action = np.full((size, 2), previous, np.float32)
    return NetworkInput(observation, previous_action, np.zeros(size, np.float32))


@pytest.mark.parametrize("name", ["popart", "multihead_impala", "r2d2"])
def test_agents_of_discrete_actions_refuse_vectors_with_a_sentence(name: str) -> None:
    agent = {
        "popart": lambda: popart.make(popart.Config()),
        "multihead_impala": lambda: popart.make(popart.MULTIHEAD_ATARI, name),
        "r2d2": lambda: r2d2.make(r2d2.Config()),
    }[name]()
    for make in (agent.make_network, agent.make_update):
        with pytest.raises(
            ValueError, match=r"^The agent needs discrete .* numbers from -1 to 6\.$"
        ):
            make(OF_PAIRS)


def test_pixel_control_refuses_vectors_with_a_sentence() -> None:
    agent = impala.make(small_config("impala", pixel_control_cost=0.1, torso="shallow"))
    spec = environment_spec((84, 84, 3), np.uint8)._replace(actions=BOUNDED)
    with pytest.raises(ValueError, match=r"^Pixel control needs discrete actions, but"):
        agent.make_update(spec)


def test_in_acmes_loop_actions_stay_within_bounds_of_float64() -> None:
    """σ is so great that most of them are at a bound, which the nearest float32 oversteps."""
    config = small_config(
        "impala",
        length=4,
        period=2,
        batch_size=2,
        queue_size=4,
        log_sigma_min=3.0,
        log_sigma_max=4.0,
    )
    spec = specs.BoundedArray((2,), np.float64, [0.1, -0.3], [0.7, 1.1])
    environment = Episodes(specs.Array((1,), np.float32), spec, length=4)
    agent = impala.IMPALA(acme.make_environment_spec(environment), config)
    run_episodes(environment, agent, 10)
    played_actions = np.stack(environment.actions)
    assert played_actions.dtype == np.float64
    for bound in (spec.minimum, spec.maximum):
        assert (played_actions == bound).sum() > 5
    rows = 10 * 5
    unrolls = ((rows - 1) // 2 * 2 - 4) // 2 + 1
    assert agent.learner.learner_steps == unrolls // 2


def test_the_library_form_refuses_actions_without_bounds() -> None:
    unbounded = OF_PAIRS._replace(actions=specs.Array((2,), np.float64))
    table = OF_PAIRS._replace(actions=specs.BoundedArray((2, 2), np.float64, 0, 3))
    for spec in (unbounded, table):
        with pytest.raises(ValueError, match="one vector of floats within finite bounds, got Box"):
            SingleProcessAgent(impala.make(small_config("impala")), spec, seed=0)
