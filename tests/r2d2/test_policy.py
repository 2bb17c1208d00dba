"""The ladder of epsilons, and actions whose log-probability is exactly that of the draw."""

import numpy as np
import pytest
import tensorflow as tf

from r2d2.network import make_network
from r2d2.policy import (
    epsilon_greedy,
    epsilon_ladder,
    estimates,
    make_evaluation_policy,
    make_policy,
)
from r2d2.targets import h
from tests.batches import NUM_ACTIONS, environment_spec, random_inputs
from tests.small_agents import small_config


def test_ladder_of_the_paper() -> None:
    ladder = epsilon_ladder(np.arange(256), 256, 0.4, 7.0)
    assert ladder.dtype == np.float32
    assert ladder[0] == np.float32(0.4)
    assert ladder[255] == pytest.approx(0.4**8)
    assert ladder[100] == pytest.approx(0.4 ** (1 + 7 * 100 / 255))
    assert (np.diff(ladder) < 0).all()


def test_part_of_a_ladder_has_the_same_rungs() -> None:
    whole = epsilon_ladder(np.arange(10), 10, 0.3, 2.0)
    np.testing.assert_array_equal(epsilon_ladder(np.array([7, 2]), 10, 0.3, 2.0), whole[[7, 2]])


def test_draws_follow_the_probabilities_that_are_reported() -> None:
    draws = 40_000
    q = tf.tile([[0.0, 3.0, 3.0, -1.0]], [draws, 1])  # the first of equals is the greedy one
    generator = tf.random.Generator.from_seed(0)
    action, log_probability = epsilon_greedy(q, tf.constant([0.4]), generator)
    frequency = np.bincount(action, minlength=4) / draws
    np.testing.assert_allclose(frequency, [0.1, 0.7, 0.1, 0.1], atol=0.01)
    expected = np.array([0.1, 0.7, 0.1, 0.1])[action.numpy()]
    np.testing.assert_allclose(np.exp(log_probability), expected, rtol=1e-6)


def test_values_are_those_of_the_network() -> None:
    config = small_config("r2d2", epsilon_base=0.9, epsilon_alpha=0.0)
    network = make_network(config, environment_spec())
    policy = make_policy(config, network, np.arange(50), 50, seed=0)
    output = policy(random_inputs(0, 50), network.initial_state(50))
    q, state = network.step(random_inputs(0, 50), network.initial_state(50))
    taken = q.numpy()[np.arange(50), output.action]
    np.testing.assert_allclose(output.values["q_taken"], taken, atol=1e-6)
    np.testing.assert_allclose(output.values["q_max"], np.max(q, axis=-1), atol=1e-6)
    np.testing.assert_allclose(output.core_state.cell, state.cell, atol=1e-6)
    assert (taken < np.max(q, axis=-1)).any()
    assert output.action.dtype == tf.int32


def test_every_actor_has_its_own_epsilon() -> None:
    config = small_config("r2d2", epsilon_base=0.5, epsilon_alpha=3.0)
    network = make_network(config, environment_spec())
    policy = make_policy(config, network, np.arange(4), 4, seed=0)
    epsilon = 0.5 ** (1.0 + np.arange(4))
    greedy = 1 - epsilon * (NUM_ACTIONS - 1) / NUM_ACTIONS
    inputs = random_inputs(0, 4)
    best = np.argmax(network.step(inputs, network.initial_state(4))[0], axis=-1)
    actions = np.stack([policy(inputs, network.initial_state(4)).action for _ in range(1500)])
    np.testing.assert_allclose((actions == best).mean(axis=0), greedy, atol=0.04)


def test_evaluation_is_greedy_for_any_number_of_environments() -> None:
    network = make_network(small_config("r2d2"), environment_spec())
    policy = make_evaluation_policy(small_config("r2d2"), network, seed=0)
    for size in (1, 30):
        output = policy(random_inputs(size, size), network.initial_state(size))
        q, _ = network.step(random_inputs(size, size), network.initial_state(size))
        np.testing.assert_array_equal(output.action, np.argmax(q, axis=-1))
        np.testing.assert_array_equal(output.log_probability, 0.0)


@pytest.mark.parametrize("rescale", [True, False])
def test_a_return_is_estimated_in_the_rewards_units(rescale: bool) -> None:
    config = small_config("r2d2", rescale=rescale)
    returns = np.array([-20.0, 0.0, 7.5], np.float32)
    q = h(returns, config.rescaling_epsilon).numpy() if rescale else returns
    estimated = estimates(config, {"q_taken": tf.constant(q), "q_max": tf.constant(q + 1)})
    assert list(estimated) == ["Q"]
    np.testing.assert_allclose(estimated["Q"], returns, atol=1e-4)
