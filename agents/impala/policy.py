"""IMPALA acts by samples from its policy.

In evaluation too where actions are numbers; where they are vectors, by the mean.
"""

from collections.abc import Callable

import numpy as np
import tensorflow as tf
from acme import specs

from agents.contract import Network, Policy, PolicyOutput
from agents.impala.distributions import Distribution, squashed
from agents.networks.network import is_discrete
from replay.structures import Array, Nest, NetworkInput

Choose = Callable[[Distribution, tf.random.Generator], tf.Tensor]


def make_policy(network: Network, indices: np.ndarray, num_actors: int, seed: int) -> Policy:
    """The policy of the actors with these indices: all act alike (Section 3)."""
    del indices, num_actors
    return _policy(network, seed, lambda pi, generator: pi.sample(generator), lambda output: {})


def make_evaluation_policy(network: Network, seed: int) -> Policy:
    """The policy of evaluation, in any number of environments.

    Its `value`, `[N, K]`, is the network's.
    """
    return _policy(
        network,
        seed,
        lambda pi, generator: pi.for_evaluation(generator),
        lambda output: {"value": output.value},
    )


def environment_action(action: Array, actions: specs.BoundedArray) -> Array:
    """The environment's action for the policy's `action`; a vector is squashed.

    Args:
      action: `[N]` or `[N, D]` int32, or `[N, D]` float32 before it is squashed.
      actions: the spec of the environment's.
    """
    return action if is_discrete(actions) else squashed(action, actions)


def _policy(
    network: Network, seed: int, choose: Choose, values_of: Callable[[Nest], dict[str, tf.Tensor]]
) -> Policy:
    generator = tf.random.Generator.from_seed(seed)

    @tf.function(autograph=False)
    def policy(inputs: NetworkInput, core_state: Nest) -> PolicyOutput:
        output, core_state = network.step(inputs, core_state)
        action = choose(output.policy, generator)
        log_mu = output.policy.log_probability(action)
        return PolicyOutput(action, log_mu, values_of(output), core_state)

    return policy
