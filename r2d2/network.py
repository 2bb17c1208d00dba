"""R2D2's network: convolutions, an LSTM, a dueling head (Kapturowski et al. 2019, Appendix)."""

import sonnet as snt
import tensorflow as tf
from acme import specs

from agents.core import make_core
from agents.language import with_language
from agents.networks import RecurrentNetwork
from agents.torsos import make_torso
from r2d2.config import Config


class DuelingHead(snt.Module):
    """Action values from a state value and advantages (Wang et al. 2016, Equation 9).

        Q(s, a) = V(s) + A(s, a) − 1/|A| Σ_a' A(s, a')

    Args:
      num_actions: A.
      hidden_size: units of the hidden layer that value and advantages each have.
    """

    def __init__(self, num_actions: int, hidden_size: int) -> None:
        super().__init__()
        self._value = snt.nets.MLP([hidden_size, 1])
        self._advantage = snt.nets.MLP([hidden_size, num_actions])

    def __call__(self, x: tf.Tensor) -> tf.Tensor:
        """`[B, H]` -> `[B, A]`."""
        advantage = self._advantage(x)
        mean = tf.reduce_mean(advantage, axis=-1, keepdims=True)
        return self._value(x) + advantage - mean


def make_network(config: Config, environment_spec: specs.EnvironmentSpec) -> RecurrentNetwork:
    """The network of a config; its outputs are action values `[..., A]`.

    Without a core it does not see the previous step either: that is memory of a kind.
    """
    num_actions = environment_spec.actions.num_values
    torso = make_torso(config.torso, config.hidden_sizes)
    return RecurrentNetwork(
        torso=with_language(torso, environment_spec.observations),
        core=make_core(config.lstm_size),
        head=DuelingHead(num_actions, config.head_size),
        num_actions=num_actions,
        sees_previous_step=config.lstm_size > 0,
    )
