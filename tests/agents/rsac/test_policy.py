"""What actors do and know: bounds, the mean in evaluation, values, the previous action."""

import numpy as np
import pytest
import tensorflow as tf

from agents.actor import make_actor
from agents.impala.distributions import squashed
from agents.rsac.agent import make
from agents.rsac.network import head_of
from replay.structures import NetworkInput
from tests.agents.recording import Recorder
from tests.batches import VECTORS, environment_spec, random_inputs
from tests.small_agents import small_config

SPEC = environment_spec()._replace(actions=VECTORS)
SIZE = 50


def test_evaluation_acts_by_the_mean_and_actors_around_it() -> None:
    config = small_config("rsac", initial_temperature=0.5)
    agent = make(config)
    network = agent.make_network(SPEC)
    inputs, state = random_inputs(0, SIZE, config), network.initial_state(SIZE)
    evaluated = agent.make_evaluation_policy(network, 0)(inputs, state)
    acted = agent.make_policy(network, np.arange(SIZE), SIZE, 0)(inputs, state)
    assert (np.abs(acted.action - evaluated.action) > 1e-4).all()
    assert np.std(acted.action - evaluated.action) > 0.3
    seen = inputs._replace(previous_action=np.tanh(inputs.previous_action))
    outputs, _ = network.step(seen, state)
    np.testing.assert_allclose(evaluated.action, outputs.policy.mean, atol=1e-6)
    for output in (evaluated, acted):
        q = head_of(network).action_values(outputs.features, output.action)
        assert q.shape == (2, SIZE)
        assert 0 < (q[0] < q[1]).numpy().sum() < SIZE
        np.testing.assert_allclose(output.values["q_taken"], np.min(q, axis=0), atol=1e-6)
        np.testing.assert_allclose(
            output.log_probability, outputs.policy.log_probability(output.action), atol=1e-4
        )
        value = output.values["q_taken"] - 0.5 * output.log_probability
        np.testing.assert_allclose(output.values["value"], value, atol=1e-4)


def test_the_deviation_stays_within_its_bounds_and_the_mean_has_none() -> None:
    network = make(small_config("rsac", log_sigma_min=-1.0, log_sigma_max=-0.5)).make_network(SPEC)
    policy = head_of(network)(100 * tf.random.normal([SIZE, 6])).policy
    assert (np.abs(policy.mean) > 2).any()
    log_sigma = policy.log_sigma.numpy()
    assert log_sigma.min() == -1.0
    assert log_sigma.max() == -0.5
    assert ((log_sigma > -1.0) & (log_sigma < -0.5)).any()


def test_the_environment_is_given_what_is_squashed_and_replay_what_is_not() -> None:
    agent, recorder = make(small_config("rsac")), Recorder()
    network = agent.make_network(SPEC)
    policy = agent.make_policy(network, np.arange(2), 2, 0)
    actor = make_actor(agent, network, policy, num_environments=2, writer=recorder)
    observation = np.ones((2, 5), np.float32)
    given = actor.act(observation, np.zeros(2, np.uint8), np.zeros(2, np.uint8))
    actor.observe(np.zeros(2), np.ones(2))
    (stored,) = recorder.column("action")
    np.testing.assert_array_equal(given, squashed(stored, VECTORS))


@pytest.mark.parametrize("lstm_size", [0, 6])
def test_only_a_recurrent_network_sees_the_previous_step_and_the_action_as_it_was_done(
    lstm_size: int,
) -> None:
    config = small_config("rsac", lstm_size=lstm_size, burn_in=0)
    agent = make(config)
    network = agent.make_network(SPEC)
    policy, state = agent.make_evaluation_policy(network, 0), network.initial_state(1)

    def chosen(action: float, reward: float) -> np.ndarray:
        previous = np.full((1, 2), action, np.float32)
        inputs = NetworkInput(np.ones((1, 5), np.float32), previous, np.array([reward], np.float32))
        action_: np.ndarray = policy(inputs, state).action.numpy()
        return action_

    first = chosen(0.0, 0.0)
    assert (np.abs(chosen(1.0, 0.0) - first).max() > 1e-4) == (lstm_size > 0)
    assert (np.abs(chosen(0.0, 1.0) - first).max() > 1e-4) == (lstm_size > 0)
    np.testing.assert_allclose(chosen(30.0, 0.0), chosen(20.0, 0.0), atol=1e-6)
    assert agent.is_recurrent == (lstm_size > 0)
