"""Actions are drawn from the softmax, and their log-probability is exactly that of the draw."""

import numpy as np
import tensorflow as tf

from agents.impala.distributions import Categorical
from agents.impala.network import make_network
from agents.impala.policy import make_evaluation_policy, make_policy
from replay.structures import NetworkInput
from tests.agents.impala.batches import small_config
from tests.batches import NUM_ACTIONS, OBSERVATION_SIZE, environment_spec

PROBABILITIES = np.array([0.1, 0.6, 0.25, 0.05])


def _inputs(seed: int, size: int) -> NetworkInput:
    rng = np.random.default_rng(seed)
    return NetworkInput(
        rng.normal(size=(size, OBSERVATION_SIZE)).astype(np.float32),
        rng.integers(NUM_ACTIONS, size=size).astype(np.int32),
        rng.normal(size=size).astype(np.float32),
    )


def test_draws_follow_the_probabilities_that_are_reported() -> None:
    draws = 40_000
    logits = tf.tile(tf.constant(np.log(PROBABILITIES)[None] + 7.0, tf.float32), [draws, 1])
    policy = Categorical(logits)
    action = policy.sample(tf.random.Generator.from_seed(0))
    log_mu = policy.log_probability(action)
    assert action.dtype == tf.int32
    np.testing.assert_allclose(np.bincount(action) / draws, PROBABILITIES, atol=0.01)
    np.testing.assert_allclose(np.exp(log_mu), PROBABILITIES[action.numpy()], rtol=1e-5)


def _play(seed: int, num_steps: int = 20) -> list[np.ndarray]:
    tf.random.set_seed(1)
    network = make_network(small_config(), environment_spec())
    policy = make_policy(network, np.arange(4), 4, seed)
    state = network.initial_state(4)
    record: list[np.ndarray] = []
    for t in range(num_steps):
        output = policy(_inputs(t, 4), state)
        state = output.core_state
        record += [x.numpy() for x in (output.action, output.log_probability, *state)]
    return record


def test_a_seed_fixes_the_stream_bit_for_bit() -> None:
    first, again, other = _play(7), _play(7), _play(8)
    for x, y in zip(first, again, strict=True):
        np.testing.assert_array_equal(x, y)
    assert any((x != y).any() for x, y in zip(first[::4], other[::4], strict=True))


def test_evaluation_samples_too_in_any_number_of_environments() -> None:
    network = make_network(small_config(), environment_spec())
    policy = make_evaluation_policy(network, seed=0)
    for size in (1, 2_000):
        inputs = NetworkInput(*(np.repeat(x, size, axis=0) for x in _inputs(0, 1)))
        output = policy(inputs, network.initial_state(size))
        expected, state = network.step(inputs, network.initial_state(size))
        np.testing.assert_allclose(output.core_state.cell, state.cell, atol=1e-6)
        mu = tf.nn.softmax(expected.policy.logits)[0].numpy()
        np.testing.assert_allclose(
            np.exp(output.log_probability), mu[output.action.numpy()], rtol=1e-4
        )
        np.testing.assert_allclose(output.values["value"], expected.value, atol=1e-6)
    np.testing.assert_allclose(np.bincount(output.action) / 2_000, mu, atol=0.04)
