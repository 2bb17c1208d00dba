"""STAC's network: IMPALA's, with heads that have hidden layers, and with several for STACX."""

import functools
from collections.abc import Sequence

import sonnet as snt
import tensorflow as tf
from acme import specs

from agents.impala.network import KEEPS_VARIANCE, ActorCriticHead, PolicyAndValue, policy_form
from agents.networks.layers import Linear
from agents.networks.network import RecurrentNetwork, network_under
from agents.stac.config import Config
from replay.structures import Nest
from tensor_ops.elementwise import relu


class Perceptron(snt.Module):
    """Hidden layers with ReLUs, computed in `dtype`, then a linear one of N, `size`.

    Policy and value of a head are one each (Zahavy et al. 2020, Section 9.3).
    """

    def __init__(self, size: int, hidden_sizes: Sequence[int], dtype: tf.DType) -> None:
        super().__init__()
        self._hidden = [Linear(h, w_init=KEEPS_VARIANCE, dtype=dtype) for h in hidden_sizes]
        self._output = snt.Linear(size)

    def __call__(self, x: tf.Tensor) -> tf.Tensor:
        """`[B, H]` -> `[B, N]`, both of one type."""
        hidden = x
        for layer in self._hidden:
            hidden = relu(layer(hidden))
        return self._output(tf.cast(hidden, x.dtype))


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
