"""Acme's R2D2 network of the sizes that a Config asks for, on frames as they are stored."""

from typing import Any

import numpy as np
import sonnet as snt
import tensorflow as tf
from acme import specs
from acme.tf import networks
from acme.tf.networks import base, duelling, embedding
from acme.wrappers.observation_action_reward import OAR

from benchmarks.peers.protocol import Settings


class Network(base.RNNCore):
    """As Acme's own `R2D2AtariNetwork`, but its convolutions are not padded.

    With padding they and the LSTM behind them would do twice the work.

    Args:
      config: sizes.
      num_actions: A.
    """

    def __init__(self, config: Settings, num_actions: int) -> None:
        super().__init__(name="r2d2")
        self._embed = embedding.OAREmbedding(torso=_Torso(), num_actions=num_actions)
        self._core = networks.LSTM(config["lstm_size"])
        self._head = duelling.DuellingMLP(num_actions, hidden_sizes=[config["head_size"]])

    def __call__(self, inputs: OAR, state: snt.LSTMState) -> tuple[tf.Tensor, snt.LSTMState]:
        """One step, `[B, ...]`."""
        x, state = self._core(self._embed(inputs), state)
        return self._head(x), state

    def initial_state(self, batch_size: int, **_: Any) -> snt.LSTMState:
        """Zeros."""
        return self._core.initial_state(batch_size)

    def unroll(
        self, inputs: OAR, state: snt.LSTMState, sequence_length: int
    ) -> tuple[tf.Tensor, snt.LSTMState]:
        """`[T, B, ...]`, as Acme's own: torso and head take all rows at once."""
        x = snt.BatchApply(self._embed)(inputs)
        x, state = self._core.unroll(x, state, sequence_length)
        return snt.BatchApply(self._head)(x), state


class _Torso(base.Module):
    def __init__(self) -> None:
        super().__init__(name="torso")
        self._layers = snt.Sequential(
            [
                snt.Conv2D(32, 8, 4, padding="VALID"),
                tf.nn.relu,
                snt.Conv2D(64, 4, 2, padding="VALID"),
                tf.nn.relu,
                snt.Conv2D(64, 3, 1, padding="VALID"),
                tf.nn.relu,
                snt.Flatten(),
            ]
        )

    def __call__(self, images: tf.Tensor) -> tf.Tensor:
        return self._layers(tf.cast(images, tf.float32) / 255.0)


def environment_spec(settings: Settings) -> specs.EnvironmentSpec:
    """What Acme's wrappers would say of the game."""
    actions = specs.DiscreteArray(settings["num_actions"])
    reward = specs.Array((), np.float32)
    return specs.EnvironmentSpec(
        observations=OAR(specs.Array(settings["image"], np.uint8), actions, reward),
        actions=actions,
        rewards=reward,
        discounts=specs.BoundedArray((), np.float32, 0.0, 1.0),
    )
