"""IMPALA's networks, made from a Config, and the policies that act by them."""

import dataclasses
import itertools
from collections.abc import Callable

import numpy as np
import pytest
import tensorflow as tf
from acme import specs

from agents.impala.agent import ATARI, make
from agents.impala.distributions import Categorical, Several, form_of
from agents.impala.network import make_network
from agents.impala.policy import environment_action, make_evaluation_policy, make_policy
from replay.structures import NO_ACTION, NetworkInput
from tests.batches import OBSERVATION_SIZE, environment_spec, inputs_after, random_inputs
from tests.small_agents import small_config


def test_what_differs_between_two_images_is_not_lost_in_the_torso() -> None:
    images = np.random.default_rng(0).normal(size=(8, 84, 84, 4)).astype(np.float32)
    inputs = NetworkInput(images, tf.zeros([8], tf.int32), tf.zeros([8]))
    network = make_network(dataclasses.replace(ATARI, torso="shallow"), environment_spec())
    x, _ = network.unroll_core(
        tf.nest.map_structure(lambda rows: rows[tf.newaxis], inputs),
        (),
        tf.zeros([1, 8], tf.bool),
        tf.ones([1, 8], tf.bool),
    )
    assert 0.5 < np.sqrt(np.mean(np.square(x))) < 2.0  # 1 at the input; 0.3 by Sonnet's default


def test_bounded_actions_are_given_a_gaussian_within_the_configs_range() -> None:
    spec = environment_spec()._replace(actions=specs.BoundedArray((2,), np.float32, -1, 1))
    network = make_network(small_config("impala", log_sigma_min=-0.5, log_sigma_max=-0.25), spec)
    inputs = inputs_after(0, 0.0)._replace(previous_action=tf.zeros([2, 2]))
    policy = network.step(inputs, network.initial_state(2))[0].policy
    assert policy.mean.shape == policy.log_sigma.shape == (2, 2)
    assert (np.abs(policy.log_sigma + 0.375) < 0.125).all()


PROBABILITIES = np.array([0.1, 0.6, 0.25, 0.05])


def test_draws_follow_the_probabilities_that_are_reported() -> None:
    draws = 40_000
    logits = tf.tile(tf.constant(np.log(PROBABILITIES)[None] + 7.0, tf.float32), [draws, 1])
    policy = Categorical(logits)
    action = policy.sample(tf.random.Generator.from_seed(0))
    log_mu = policy.log_probability(action)
    assert action.dtype == tf.int32
    np.testing.assert_allclose(np.bincount(action) / draws, PROBABILITIES, atol=0.01)
    np.testing.assert_allclose(np.exp(log_mu), PROBABILITIES[action.numpy()], rtol=1e-5)


def test_evaluation_samples_too_in_any_number_of_environments() -> None:
    network = make_network(small_config("impala"), environment_spec())
    policy = make_evaluation_policy(network, seed=0)
    for size in (1, 2_000):
        inputs = NetworkInput(*(np.repeat(x, size, axis=0) for x in random_inputs(0, 1)))
        output = policy(inputs, network.initial_state(size))
        expected, state = network.step(inputs, network.initial_state(size))
        np.testing.assert_allclose(output.core_state.cell, state.cell, atol=1e-6)
        mu = tf.nn.softmax(expected.policy.logits)[0].numpy()
        np.testing.assert_allclose(
            np.exp(output.log_probability), mu[output.action.numpy()], rtol=1e-4
        )
        np.testing.assert_allclose(output.values["value"], expected.value, atol=1e-6)
    np.testing.assert_allclose(np.bincount(output.action) / 2_000, mu, atol=0.04)


COUNTS = (3, 2, 4)
ACTIONS = specs.BoundedArray((3,), np.int32, 0, np.array(COUNTS) - 1)
SPEC = environment_spec()._replace(actions=ACTIONS)
EVERY = np.array(list(itertools.product(*map(range, COUNTS))), np.int32)  # [24, 3]


def _policy(seed: int, *shape: int) -> tuple[Several, np.ndarray]:
    """A policy, and the probabilities `[..., 24]` of all of its actions."""
    outputs = np.random.default_rng(seed).normal(size=(*shape, sum(COUNTS))).astype(np.float32)
    policy = form_of(ACTIONS).make(tf.constant(outputs))
    assert isinstance(policy, Several)
    each = [np.exp(x) / np.exp(x).sum(-1, keepdims=True) for x in np.split(outputs, [3, 5], -1)]
    joint = [
        np.prod([p[..., a] for p, a in zip(each, action, strict=True)], axis=0) for action in EVERY
    ]
    return policy, np.stack(joint, axis=-1)


@pytest.mark.parametrize("wrap", [lambda f: f, tf.function], ids=["eager", "traced"])
def test_the_joint_probabilities_entropy_and_divergence(wrap: Callable) -> None:
    (policy, joint), (other, of_other) = _policy(0, 2, 5), _policy(1, 2, 5)
    for index, action in enumerate(EVERY):
        taken = tf.constant(np.broadcast_to(action, (2, 5, 3)))
        actual = wrap(lambda taken=taken: policy.log_probability(taken))()
        np.testing.assert_allclose(actual, np.log(joint[..., index]), rtol=1e-4)
    np.testing.assert_allclose(joint.sum(axis=-1), 1, rtol=1e-5)
    negative_entropy = (joint * np.log(joint)).sum(axis=-1)
    np.testing.assert_allclose(wrap(policy.regularisation)(), negative_entropy, rtol=1e-4)
    divergence = (joint * np.log(joint / of_other)).sum(axis=-1)
    assert divergence.min() > 0.01
    np.testing.assert_allclose(wrap(policy.divergence)(other), divergence, rtol=1e-3)
    assert policy.regularisation_metric(tf.constant(-2.0)) == {"entropy": tf.constant(2.0)}


def test_it_acts_by_them_and_sees_the_previous_ones() -> None:
    network = make(small_config("impala")).make_network(SPEC)
    act = make_policy(network, np.arange(2), 2, seed=0)
    inputs = NetworkInput(
        np.ones((2, OBSERVATION_SIZE), np.float32),
        np.full((2, 3), NO_ACTION, np.int32),
        np.zeros(2, np.float32),
    )
    state = network.initial_state(2)
    output = act(inputs, state)
    assert (output.action.shape, output.action.dtype) == ((2, 3), tf.int32)
    given = environment_action(output.action.numpy(), ACTIONS)
    np.testing.assert_array_equal(given, output.action)
    before = network.step(inputs, state)[0].value
    for place in range(3):  # each of the previous numbers counts
        previous = inputs.previous_action.copy()
        previous[:, place] = 1
        after = network.step(inputs._replace(previous_action=previous), state)[0].value
        assert np.abs(after - before).max() > 1e-4
