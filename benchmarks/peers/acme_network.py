"""Acme's R2D2 network: as Acme ships it, or the one that a Config asks for."""

from typing import Any

import numpy as np
import sonnet as snt
import tensorflow as tf
from acme import specs
from acme.tf import networks
from acme.tf.networks import base, duelling, embedding
from acme.wrappers.observation_action_reward import OAR

from benchmarks.peers.protocol import Settings


def make_network(settings: Settings) -> base.RNNCore:
    """What `acme_unpadded` asks for.

    Acme's own pads its convolutions, so that they and the LSTM behind them do twice the work, has
    sizes of its own, and takes frames that were made floats when they were seen.
    """
    if settings["acme_unpadded"]:
        return UnpaddedNetwork(settings["config"], settings["num_actions"])
    return networks.R2D2AtariNetwork(settings["num_actions"])


class UnpaddedNetwork(base.RNNCore):
    """As Acme's own `R2D2AtariNetwork`, but unpadded, of any size, and on frames as stored.

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


def noise(spec: specs.Array, rng: np.random.Generator) -> np.ndarray:
    """A frame, or an array of them, as `spec` has it: bytes, or floats from 0 to 1."""
    pixels = rng.integers(256, size=spec.shape, dtype=np.uint8)
    return pixels if spec.dtype == np.uint8 else np.divide(pixels, 255, dtype=spec.dtype)


def environment_spec(settings: Settings) -> specs.EnvironmentSpec:
    """What Acme's wrappers would say of the game."""
    actions = specs.DiscreteArray(settings["num_actions"])
    frame = specs.Array(settings["image"], np.uint8 if settings["acme_unpadded"] else np.float32)
    reward = specs.Array((), np.float32)
    return specs.EnvironmentSpec(
        observations=OAR(frame, actions, reward),
        actions=actions,
        rewards=reward,
        discounts=specs.BoundedArray((), np.float32, 0.0, 1.0),
    )
