"""R2D2 acts epsilon-greedily, each actor with its own epsilon."""

from collections.abc import Callable, Mapping

import numpy as np
import tensorflow as tf

from agents import random_numbers
from agents.contract import Following, Network, Policy, PolicyOutput
from agents.networks.parts import masks
from environments.copies.vector import has_mask
from r2d2.config import Config
from r2d2.network import JointActions
from r2d2.targets import h_inverse
from replay.structures import Nest, NetworkInput

# (Q `[N, A]`, actions `[N]`, log μ `[N]`) -> more values of a policy, by name
More = Callable[[tf.Tensor, tf.Tensor, tf.Tensor], dict[str, tf.Tensor]]


def _no_more(*_: tf.Tensor) -> dict[str, tf.Tensor]:
    return {}


def epsilon_ladder(indices: np.ndarray, num_actors: int, base: float, alpha: float) -> np.ndarray:
    """The actors' epsilons (Horgan et al. 2018, Section 4).

        ε_i = ε^(1 + α i / (N − 1))

    Args:
      indices: `[n]` int, i in 0..N-1.
      num_actors: N; a single actor has the base.
      base: ε.
      alpha: α.

    Returns:
      `[n]` float32.
    """
    exponent = 1.0 + alpha * np.asarray(indices) / max(num_actors - 1, 1)
    return (base**exponent).astype(np.float32)


def epsilon_greedy(
    q: tf.Tensor, epsilon: tf.Tensor, generator: tf.random.Generator, legal: Nest = None
) -> tuple[tf.Tensor, tf.Tensor]:
    """Draws actions, and gives their exact log-probability.

        μ(a | x) = ε / A + (1 − ε) 1[a = argmax_b Q(x, b)],   the first of equals being the argmax

    Args:
      q: `[N, A]`.
      epsilon: `[N]`, or `[1]` for all.
      generator: the stream of random numbers.
      legal: `agents.legal_actions.Legal`, to which q is confined; A is their number then.

    Returns:
      Actions `[N]` int32 and log μ of them `[N]` float32.
    """
    num_actors, num_actions = tf.shape(q)[0], q.shape[-1]
    greedy = tf.argmax(q, axis=-1, output_type=tf.int32)
    explores = random_numbers.uniform(generator, [num_actors]) < epsilon
    if legal is None:
        any_action = generator.uniform([num_actors], maxval=num_actions, dtype=tf.int32)
    else:
        any_action, num_actions = legal.any(generator), legal.number()
    action = tf.where(explores, any_action, greedy)
    probability = epsilon / num_actions + (1.0 - epsilon) * tf.cast(action == greedy, tf.float32)
    return action, tf.math.log(probability)


def make_policy(
    config: Config,
    network: Network,
    indices: np.ndarray,
    num_actors: int,
    seed: int,
    more: More = _no_more,
) -> Policy:
    """The policy of the actors with these indices; it gives `more` values too."""
    epsilon = epsilon_ladder(indices, num_actors, config.epsilon_base, config.epsilon_alpha)
    return epsilon_greedy_policy(network, epsilon, seed, more)


def make_evaluation_policy(config: Config, network: Network, seed: int) -> Policy:
    """The policy of evaluation, in any number of environments."""
    epsilon = np.array([config.evaluation_epsilon], np.float32)
    return epsilon_greedy_policy(network, epsilon, seed)


def make_following(network: Network, more: More = _no_more) -> Following:
    """The policy that takes the actions of demonstrations, surely (`Agent.make_following`)."""
    joint = JointActions(network.actions)

    @tf.function(autograph=False)
    def policy(inputs: NetworkInput, core_state: Nest, action: tf.Tensor) -> PolicyOutput:
        q, core_state = network.step(inputs, core_state)  # [N, A]
        index, log_probability = joint.index(action), tf.zeros(tf.shape(q)[:1])
        values = _values(q, index) | more(q, index, log_probability)
        return PolicyOutput(action, log_probability, values, core_state)

    return policy


def estimates(config: Config, values: Mapping[str, tf.Tensor]) -> dict[str, tf.Tensor]:
    """The return that a policy's values `[N]` estimate: Q of the actions taken, without h."""
    q = values["q_taken"]
    return {"Q": h_inverse(q, config.rescaling_epsilon) if config.rescale else q}


def epsilon_greedy_policy(
    network: Network, epsilon: np.ndarray, seed: int, more: More = _no_more
) -> Policy:
    """A policy that gives `more` values too."""
    generator = tf.random.Generator.from_seed(seed)
    joint = JointActions(network.actions)

    @tf.function(autograph=False)
    def policy(inputs: NetworkInput, core_state: Nest) -> PolicyOutput:
        q, core_state = network.step(inputs, core_state)  # [N, A]
        legal = masks().legal(inputs.observation) if has_mask(inputs.observation) else None
        index, log_probability = epsilon_greedy(q, epsilon, generator, legal)
        values = _values(q, index) | more(q, index, log_probability)
        return PolicyOutput(joint.action(index), log_probability, values, core_state)

    return policy


def _values(q: tf.Tensor, index: tf.Tensor) -> dict[str, tf.Tensor]:
    taken = tf.gather(q, index, axis=-1, batch_dims=1)
    return {"q_taken": taken, "q_max": tf.reduce_max(q, axis=-1)}
