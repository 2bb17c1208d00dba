"""R2D2's network: convolutions, an LSTM, a dueling head (Kapturowski et al. 2019, Appendix)."""

import math

import numpy as np
import sonnet as snt
import tensorflow as tf
from acme import specs

from agents.networks.layers import Linear
from agents.networks.network import RecurrentNetwork, choices_of, network_under
from r2d2.config import Config
from replay.structures import Nest
from tensor_ops.elementwise import relu

MOST_ACTIONS = 1_024  # each has a value of its own, and is seldom tried if there are many


class JointActions:
    """Numbers the actions of an environment; replay, actor and environment have them as they are.

        i = Σ_d a_d s_d,   a_d = ⌊i / s_d⌋ mod A_d,   s_d = A_{d+1} A_{d+2} ... A_D

    Args:
      actions: the spec of the environment's: one number from 0, or several `[D]`.

    Attributes:
      count: Π_d A_d.

    Raises:
      ValueError: they are not discrete, or there are more than `MOST_ACTIONS` of several numbers.
    """

    def __init__(self, actions: specs.BoundedArray) -> None:
        counts = choices_of(actions)
        self._is_one = not actions.shape
        self.count = math.prod(counts)
        if not self._is_one and self.count > MOST_ACTIONS:
            raise ValueError(
                f"The agent gives each of {' x '.join(map(str, counts))} = {self.count:,} "
                f"combinations of actions a value, and takes {MOST_ACTIONS:,} at most; impala has "
                "a policy for each number."
            )
        self._counts = np.array(counts, np.int32)
        self._strides = np.array([math.prod(counts[d + 1 :]) for d in range(len(counts))], np.int32)

    def index(self, action: tf.Tensor) -> tf.Tensor:
        """Actions `[...]` or `[..., D]` -> `[...]` int32 in 0..count-1."""
        return action if self._is_one else tf.reduce_sum(action * self._strides, axis=-1)

    def action(self, index: tf.Tensor) -> tf.Tensor:
        """`[...]` int32 -> actions `[...]` or `[..., D]`."""
        if self._is_one:
            return index
        return index[..., tf.newaxis] // self._strides % self._counts


class DuelingHead(snt.Module):
    """Action values from a state value and advantages (Wang et al. 2016, Equation 9).

        Q(s, a) = V(s) + A(s, a) − 1/|A| Σ_a' A(s, a')

    Args:
      num_actions: A.
      hidden_size: units of the hidden layer that value and advantages each have.
      dtype: of the hidden layers' arithmetic; outputs are float32.
    """

    def __init__(self, num_actions: int, hidden_size: int, dtype: tf.DType = tf.float32) -> None:
        super().__init__()
        self._hidden = Linear(2 * hidden_size, dtype=dtype)  # both layers in one product
        self._value = snt.Linear(1)
        self._advantage = snt.Linear(num_actions)

    def __call__(self, x: Nest) -> tf.Tensor:
        """`[B, H]` -> `[B, A]`; with legal actions beside it, the mean is over these."""
        x, legal = x if isinstance(x, tuple) else (x, None)
        hidden = tf.cast(relu(self._hidden(x)), tf.float32)
        of_value, of_advantage = tf.split(hidden, 2, axis=-1)
        advantage = self._advantage(of_advantage)
        if legal is not None:
            return legal.only(self._value(of_value) + advantage - legal.mean(advantage))
        mean = tf.reduce_mean(advantage, axis=-1, keepdims=True)
        return self._value(of_value) + advantage - mean


def make_network(config: Config, environment_spec: specs.EnvironmentSpec) -> RecurrentNetwork:
    """The network of a config; its outputs are action values `[..., A]`.

    Raises:
      ValueError: as `JointActions`.
    """
    num_actions = JointActions(environment_spec.actions).count
    head = DuelingHead(num_actions, config.head_size, tf.as_dtype(config.precision))
    return network_under(head, config, environment_spec)
