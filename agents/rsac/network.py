"""Recurrent SAC's network: one torso and one core under a policy and two critics.

    observation --torso--> · --core--> x --+--(no gradient)--> policy
    previous action, reward ----^          +--> critic 1, critic 2 <-- tanh(u)

The critics' loss alone trains torso and core, as in SAC from images (Yarats et al. 2021, Section
4.2), so actors store one recurrent state. Ni et al. 2022, Section 4.1, have a torso and core for
the policy and others for the critics; docs/rsac.md has both side by side. An action enters at the
critics' heads, so the core has seen the history alone.
"""

from typing import Any, NamedTuple

import numpy as np
import sonnet as snt
import tensorflow as tf
from acme import specs

from agents.impala.distributions import SquashedGaussian
from agents.networks.network import RecurrentNetwork, is_discrete, network_under
from agents.networks.perceptron import Perceptron
from agents.rsac.config import Config
from replay.structures import NetworkInput


class Outputs(NamedTuple):
    """The network's outputs."""

    policy: SquashedGaussian  # [..., D], π
    features: tf.Tensor  # [..., H], x, which `Head.action_values` takes


class Head(snt.Module):
    """Policy, critics and temperature, which actors need as the learner does.

    Args:
      num_numbers: D, of an action.
      config: hyperparameters.

    Attributes:
      log_temperature: log α, a scalar.
    """

    def __init__(self, num_numbers: int, config: Config) -> None:
        super().__init__()
        self._num_numbers = num_numbers
        self._bounds = config.log_sigma_min, config.log_sigma_max
        layers = config.head_hidden_sizes, tf.as_dtype(config.precision)
        self._policy = Perceptron(2 * num_numbers, *layers)
        self._critics = [Perceptron(1, *layers) for _ in range(2)]
        self.log_temperature = tf.Variable(np.log(np.float32(config.initial_temperature)))

    @property
    def policy_variables(self) -> tuple[tf.Variable, ...]:
        """What the policy's loss trains; they exist from the first call on."""
        variables: tuple[tf.Variable, ...] = self._policy.trainable_variables
        return variables

    def __call__(self, x: tf.Tensor) -> Outputs:
        """`[B, H]` -> policies `[B]` and x itself; the variables of all are made.

        μ is the first half of the policy's outputs; log σ the second, clipped (SAC's code).
        """
        mean, log_sigma = tf.split(self._policy(tf.stop_gradient(x)), 2, axis=-1)
        self._make_critics(x)
        return Outputs(SquashedGaussian(mean, tf.clip_by_value(log_sigma, *self._bounds)), x)

    def action_values(self, x: tf.Tensor, u: tf.Tensor) -> tf.Tensor:
        """Q_1 and Q_2 of tanh(u): features `[..., H]` and actions `[..., D]` -> `[2, ...]`."""
        rows = tf.concat([x, tf.tanh(u)], axis=-1)
        folded = tf.reshape(rows, [-1, rows.shape[-1]])
        values = tf.stack([critic(folded)[:, 0] for critic in self._critics])
        return tf.reshape(values, tf.concat([[2], tf.shape(rows)[:-1]], axis=0))

    @snt.once
    def _make_critics(self, x: tf.Tensor) -> None:
        self.action_values(x, tf.zeros([tf.shape(x)[0], self._num_numbers]))


def make_network(config: Config, environment_spec: specs.EnvironmentSpec) -> RecurrentNetwork:
    """The network of a config.

    Raises:
      ValueError: actions are not vectors within bounds.
    """
    actions = environment_spec.actions
    if is_discrete(actions):
        raise ValueError(
            "The agent needs actions that are vectors within bounds, such as gymnasium's Box, but "
            f"this environment's are whole numbers up to {np.max(actions.maximum)}; r2d2 and "
            "impala choose among those."
        )
    return network_under(Head(actions.shape[0], config), config, environment_spec)


def head_of(network: Any) -> Head:
    """The head of this agent's network."""
    assert isinstance(network.head, Head)
    return network.head


def squash_previous(inputs: NetworkInput) -> NetworkInput:
    """The network's inputs with tanh(u) for the previous action, as the environment had it.

    μ has no bounds here, and far from 0 what u is makes no difference to what follows.
    """
    return inputs._replace(previous_action=tf.tanh(inputs.previous_action))
