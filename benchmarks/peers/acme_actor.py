"""Acme's recurrent actor in one environment: inference alone.

Beside dm-acme it needs the packages gym, trfl and jax, which Acme imports and nothing here does.
"""

from collections.abc import Callable

import numpy as np
import sonnet as snt
import trfl
from acme.agents.tf.actors import RecurrentActor
from acme.tf import utils as tf_utils
from acme.wrappers.observation_action_reward import OAR

from benchmarks.peers import protocol
from benchmarks.peers.acme_learner import versions
from benchmarks.peers.acme_network import environment_spec, make_network, noise

_EPSILON = 0.05


def make_step(settings: protocol.Settings) -> Callable[[], object]:
    """The choice of one action, with the policy that Acme's R2D2 acts with."""
    spec = environment_spec(settings)
    network = make_network(settings)
    tf_utils.create_variables(network, [spec.observations])
    policy = snt.DeepRNN([network, lambda q: trfl.epsilon_greedy(q, epsilon=_EPSILON).sample()])
    actor = RecurrentActor(policy)
    frames = noise(spec.observations.observation, np.random.default_rng(0))
    observation = OAR(frames, np.int32(0), np.float32(0))
    return lambda: actor.select_action(observation)


if __name__ == "__main__":
    protocol.serve(make_step, versions)
