"""IMPALA's network: torso, core, policy and baseline (Espeholt et al. 2018, Figure 4)."""

from collections.abc import Callable
from typing import NamedTuple

import sonnet as snt
import tensorflow as tf
from acme import specs

from agents.impala.config import Config
from agents.impala.distributions import Distribution, Form, form_of
from agents.networks.layers import KEEPS_VARIANCE
from agents.networks.network import RecurrentNetwork, network_under
from replay.structures import Nest


class PolicyAndValue(NamedTuple):
    """The network's outputs."""

    policy: Distribution  # [...], π
    value: tf.Tensor  # [..., K], V of each task


class ActorCriticHead(snt.Module):
    """A layer for the policy, one for the values.

    Args:
      form: of the policy.
      num_values: K.
      layer: makes one of so many outputs.
    """

    def __init__(
        self, form: Form, num_values: int = 1, layer: Callable[[int], snt.Module] = snt.Linear
    ) -> None:
        super().__init__()
        self._make_policy = form.make
        self._policy, self._value = layer(form.size), layer(num_values)

    @property
    def value_layer(self) -> snt.Module:
        """The values' layer; its variables exist from the first call on."""
        return self._value

    def __call__(self, x: Nest) -> PolicyAndValue:
        """`[B, H]` -> policies `[B]`, of legal actions where they are beside it, and `[B, K]`."""
        x, legal = x if isinstance(x, tuple) else (x, None)
        outputs = self._policy(x) if legal is None else legal.only(self._policy(x))
        return PolicyAndValue(self._make_policy(outputs), self._value(x))


def make_network(
    config: Config, environment_spec: specs.EnvironmentSpec, num_values: int = 1
) -> RecurrentNetwork:
    """The network of a config."""
    head = ActorCriticHead(policy_form(config, environment_spec), num_values)
    return network_under(head, config, environment_spec, KEEPS_VARIANCE)


def policy_form(config: Config, environment_spec: specs.EnvironmentSpec) -> Form:
    """The form of a config's policy over an environment's actions."""
    return form_of(environment_spec.actions, config.log_sigma_min, config.log_sigma_max)
