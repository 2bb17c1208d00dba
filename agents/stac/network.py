"""STAC's network: IMPALA's, with heads that have hidden layers, and with several for STACX."""

import functools
from collections.abc import Sequence

import sonnet as snt
import tensorflow as tf
from acme import specs

from agents.impala.network import ActorCriticHead, PolicyAndValue, policy_form
from agents.networks.layers import KEEPS_VARIANCE
from agents.networks.network import RecurrentNetwork, network_under
from agents.networks.perceptron import Perceptron
from agents.stac.config import Config
from replay.structures import Nest


class Heads(snt.Module):
    """P heads on one torso; the first is the one that acts (Section 3.2)."""

    def __init__(self, heads: Sequence[ActorCriticHead]) -> None:
        super().__init__()
        self.heads = tuple(heads)

    def __call__(self, x: Nest) -> PolicyAndValue:
        """The first head's outputs for `[B, H]`; the variables of all are made."""
        first, *_ = [head(x) for head in self.heads]  # a graph drops what nobody reads
        return first


def make_network(config: Config, environment_spec: specs.EnvironmentSpec) -> RecurrentNetwork:
    """The network of a config. It acts by its first head; `head.heads` are all."""
    form = policy_form(config, environment_spec)
    layer = functools.partial(
        Perceptron, hidden_sizes=config.head_hidden_sizes, dtype=tf.as_dtype(config.precision)
    )
    heads = [ActorCriticHead(form, layer=layer) for _ in range(config.num_heads)]
    return network_under(Heads(heads), config, environment_spec, KEEPS_VARIANCE)
