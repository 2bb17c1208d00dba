"""IMPALA's head, and its networks from their configs."""

import dataclasses

import numpy as np
import pytest
import tensorflow as tf
from acme import specs

from agents.impala.agent import ATARI, DMLAB
from agents.impala.network import make_network
from replay.structures import NetworkInput
from tests.agents.impala.batches import small_config
from tests.batches import OBSERVATION_SIZE, environment_spec


def _inputs(action: int, reward: float) -> NetworkInput:
    return NetworkInput(
        tf.ones([2, OBSERVATION_SIZE]), tf.fill([2], action), tf.fill([2], np.float32(reward))
    )


def _images(height: int, width: int, channels: int) -> NetworkInput:
    image = tf.zeros([1, height, width, channels], tf.uint8)
    return NetworkInput(image, tf.zeros([1], tf.int32), tf.zeros([1]))


def test_networks_of_the_two_settings() -> None:
    atari = make_network(ATARI, environment_spec(num_actions=18))
    dmlab = make_network(DMLAB, environment_spec(num_actions=9))
    output, state = atari.step(_images(84, 84, 4), atari.initial_state(1))
    assert output.policy.logits.shape == (1, 18)
    assert state == ()
    output, state = dmlab.step(_images(72, 96, 3), dmlab.initial_state(1))
    assert output.value.shape == (1, 1)
    assert state.hidden.shape == (1, 256)


@pytest.mark.parametrize("lstm_size", [0, 6])
def test_only_the_recurrent_network_sees_the_previous_step(lstm_size: int) -> None:
    network = make_network(small_config(lstm_size=lstm_size), environment_spec())
    state = network.initial_state(2)
    first, _ = network.step(_inputs(0, 0.0), state)
    for other in (_inputs(2, 0.0), _inputs(0, 1.0)):
        difference = np.abs(network.step(other, state)[0].policy.logits - first.policy.logits).max()
        assert (difference > 1e-4) == (lstm_size > 0)


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
    network = make_network(small_config(log_sigma_min=-0.5, log_sigma_max=-0.25), spec)
    inputs = _inputs(0, 0.0)._replace(previous_action=tf.zeros([2, 2]))
    policy = network.step(inputs, network.initial_state(2))[0].policy
    assert policy.mean.shape == policy.log_sigma.shape == (2, 2)
    assert (np.abs(policy.log_sigma + 0.375) < 0.125).all()
