"""IMPALA's network: torso, core, policy and baseline (Espeholt et al. 2018, Figure 4)."""

from typing import NamedTuple

import sonnet as snt
import tensorflow as tf

from agents.core import make_core
from agents.impala.config import Config
from agents.networks import RecurrentNetwork
from agents.torsos import make_torso


class PolicyAndValue(NamedTuple):
    """The network's outputs."""

    logits: tf.Tensor  # [..., A], of π
    value: tf.Tensor  # [...], V


class ActorCriticHead(snt.Module):
    """One linear layer for the policy's logits, one for the value.

    Args:
      num_actions: A.
    """

    def __init__(self, num_actions: int) -> None:
        super().__init__()
        self._logits = snt.Linear(num_actions)
        self._value = snt.Linear(1)

    def __call__(self, x: tf.Tensor) -> PolicyAndValue:
        """`[B, H]` -> `[B, A]` and `[B]`."""
        return PolicyAndValue(self._logits(x), tf.squeeze(self._value(x), axis=-1))


def make_network(config: Config, num_actions: int) -> RecurrentNetwork:
    """The network of a config; its outputs are `PolicyAndValue`.

    Without a core it does not see the previous step either: that is memory of a kind.
    """
    return RecurrentNetwork(
        torso=make_torso(config.torso, config.hidden_sizes),
        core=make_core(config.lstm_size),
        head=ActorCriticHead(num_actions),
        num_actions=num_actions,
        sees_previous_step=config.lstm_size > 0,
    )
