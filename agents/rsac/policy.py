"""Recurrent SAC acts by samples of its policy, and in evaluation by the policy's mean."""

from collections.abc import Callable, Mapping

import numpy as np
import tensorflow as tf

from agents.contract import Network, Policy, PolicyOutput
from agents.impala.distributions import SquashedGaussian
from agents.rsac.losses import soft_value
from agents.rsac.network import head_of, squash_previous
from replay.structures import Nest, NetworkInput

Choose = Callable[[SquashedGaussian, tf.random.Generator], tf.Tensor]


def make_policy(network: Network, indices: np.ndarray, num_actors: int, seed: int) -> Policy:
    """The policy of the actors with these indices: all act alike."""
    del indices, num_actors
    return _policy(network, seed, SquashedGaussian.sample)


def make_evaluation_policy(network: Network, seed: int) -> Policy:
    """The policy of evaluation, in any number of environments: the mean μ (SAC, Section 7)."""
    return _policy(network, seed, SquashedGaussian.for_evaluation)


def estimates(update: object, values: Mapping[str, tf.Tensor], task: int) -> dict[str, tf.Tensor]:
    """The soft return that a policy's values `[N]` estimate: Q of the actions taken."""
    del update, task
    return {"Q": values["q_taken"]}


def _policy(network: Network, seed: int, choose: Choose) -> Policy:
    generator = tf.random.Generator.from_seed(seed)
    head = head_of(network)

    @tf.function(autograph=False)
    def policy(inputs: NetworkInput, core_state: Nest) -> PolicyOutput:
        output, core_state = network.step(squash_previous(inputs), core_state)
        action = choose(output.policy, generator)
        log_probability = output.policy.log_probability(action)
        q = head.action_values(output.features, action)
        temperature = tf.exp(head.log_temperature)
        values = {
            "q_taken": tf.reduce_min(q, axis=0),
            "value": soft_value(q, log_probability, temperature),
        }
        return PolicyOutput(action, log_probability, values, core_state)

    return policy
