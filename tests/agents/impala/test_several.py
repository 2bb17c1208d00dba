"""Policies of several numbers: what is said of all of them is the sum of what is said of each."""

import itertools
from collections.abc import Callable

import numpy as np
import pytest
import tensorflow as tf
from acme import specs

from agents.impala.agent import make
from agents.impala.distributions import Several, form_of
from agents.impala.policy import environment_action, make_policy
from replay.structures import NO_ACTION, NetworkInput
from tests.agents.impala.batches import small_config
from tests.batches import OBSERVATION_SIZE, environment_spec, random_batch

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
    network = make(small_config()).make_network(SPEC)
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


def test_an_update_learns_from_them() -> None:
    """Unrolls of one action, always rewarded, become more probable."""
    config = small_config(learning_rate=1e-2, rmsprop_epsilon=1e-3, lstm_size=0)
    tf.random.set_seed(0)
    update = make(config).make_update(SPEC)
    batch = random_batch(config, seed=1)
    chosen = np.broadcast_to(np.array([2, 0, 3], np.int32), (*batch.action.shape, 3))
    before = np.concatenate([chosen[:1] * 0 + NO_ACTION, chosen])
    batch = batch._replace(
        action=tf.constant(chosen),
        inputs=batch.inputs._replace(previous_action=tf.constant(before)),
        log_probability=tf.fill(batch.action.shape, np.float32(np.log(1 / 24))),
        reward=tf.ones(batch.action.shape),
    )

    def probability() -> float:
        rows = batch.inputs.observation[:-1]
        output, _ = update.network.step(
            NetworkInput(rows[0], before[0], np.zeros(config.batch_size, np.float32)), ()
        )
        return float(np.exp(output.policy.log_probability(batch.action[0])).mean())

    first = probability()
    for _ in range(20):
        update(batch)
    assert probability() > 2 * first
