"""IMPALA's network: torso, core, policy and baseline (Espeholt et al. 2018, Figure 4)."""

from typing import NamedTuple

import sonnet as snt
import tensorflow as tf
from acme import specs

from agents.impala.config import Config
from agents.networks.core import make_core
from agents.networks.language import with_language
from agents.networks.network import RecurrentNetwork, num_discrete
from agents.networks.torsos import make_torso

# He et al. 2015. Sonnet's default loses two thirds of the signal's size in every layer with a ReLU:
# what differs between two frames of Pong would come out of the torso at a thousandth, and the
# first updates, which move the value of all states alike, would switch most of its units off.
KEEPS_VARIANCE = snt.initializers.VarianceScaling(2.0, "fan_in", "truncated_normal")


class PolicyAndValue(NamedTuple):
    """The network's outputs."""

    logits: tf.Tensor  # [..., A], of π
    value: tf.Tensor  # [..., K], V of each task


class ActorCriticHead(snt.Module):
    """One linear layer for the policy's logits, one for the values.

    Args:
      num_actions: A.
      num_values: K.
    """

    def __init__(self, num_actions: int, num_values: int = 1) -> None:
        super().__init__()
        self._logits = snt.Linear(num_actions)
        self._value = snt.Linear(num_values)

    @property
    def value_layer(self) -> snt.Linear:
        """The values' layer; its variables exist from the first call on."""
        return self._value

    def __call__(self, x: tf.Tensor) -> PolicyAndValue:
        """`[B, H]` -> `[B, A]` and `[B, K]`."""
        return PolicyAndValue(self._logits(x), self._value(x))


def make_network(
    config: Config, environment_spec: specs.EnvironmentSpec, num_values: int = 1
) -> RecurrentNetwork:
    """The network of a config.

    Raises:
      ValueError: if the environment's actions are not discrete.
    """
    head = ActorCriticHead(num_discrete(environment_spec.actions), num_values)
    return make_network_with(head, config, environment_spec)


def make_network_with(
    head: snt.Module, config: Config, environment_spec: specs.EnvironmentSpec
) -> RecurrentNetwork:
    """A config's torso and core under a head.

    Without a core the network does not see the previous step either: that is memory of a kind.

    Args:
      head: core output `[B, H]` -> `PolicyAndValue`.
      config: of torso, core and their precision.
      environment_spec: of observations and actions.
    """
    dtype = tf.as_dtype(config.precision)
    torso = make_torso(config.torso, config.hidden_sizes, KEEPS_VARIANCE, dtype)
    return RecurrentNetwork(
        torso=with_language(torso, environment_spec.observations),
        core=make_core(config.lstm_size, dtype),
        head=head,
        actions=environment_spec.actions,
        sees_previous_step=config.lstm_size > 0,
    )
