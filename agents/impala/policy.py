"""How IMPALA acts: it samples from its policy, when it is evaluated too."""

from collections.abc import Callable

import numpy as np
import tensorflow as tf

from agents.contract import Network, Policy, PolicyOutput
from replay.structures import Nest, NetworkInput


def sample(logits: tf.Tensor, generator: tf.random.Generator) -> tuple[tf.Tensor, tf.Tensor]:
    """Draws actions from softmax(logits), and gives their exact log-probability.

    Args:
      logits: `[N, A]`.
      generator: the stream of random numbers.

    Returns:
      Actions `[N]` int32 and log μ of them `[N]` float32.
    """
    seed = generator.make_seeds(1)[:, 0]
    action = tf.random.stateless_categorical(logits, 1, seed, dtype=tf.int32)[:, 0]
    return action, log_probability(logits, action)


def log_probability(logits: tf.Tensor, action: tf.Tensor) -> tf.Tensor:
    """log softmax(logits)[action]: logits `[..., A]` and actions `[...]` -> `[...]`."""
    rank = action.shape.rank
    return tf.gather(tf.nn.log_softmax(logits), action, axis=-1, batch_dims=rank)


def make_policy(network: Network, indices: np.ndarray, num_actors: int, seed: int) -> Policy:
    """How the actors with these indices behave: all alike (Section 3)."""
    del indices, num_actors
    return _sampling_policy(network, seed, lambda output: {})


def make_evaluation_policy(network: Network, seed: int) -> Policy:
    """How the agent is evaluated, in any number of environments.

    It samples here too: what the paper trains and measures is a stochastic policy. Its `value`,
    `[N, K]`, is the network's.
    """
    return _sampling_policy(network, seed, lambda output: {"value": output.value})


def _sampling_policy(
    network: Network, seed: int, values_of: Callable[[Nest], dict[str, tf.Tensor]]
) -> Policy:
    generator = tf.random.Generator.from_seed(seed)

    @tf.function(autograph=False)
    def policy(inputs: NetworkInput, core_state: Nest) -> PolicyOutput:
        output, core_state = network.step(inputs, core_state)
        action, log_mu = sample(output.logits, generator)
        return PolicyOutput(action, log_mu, values_of(output), core_state)

    return policy
