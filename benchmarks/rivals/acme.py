"""Acme's TensorFlow R2D2: its learner on a synthetic batch, its actor in one environment.

Beside dm-acme it needs the packages gym, trfl and jax, which Acme imports and nothing here does.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import reverb
import sonnet as snt
import tensorflow as tf
import trfl
from acme import specs
from acme.adders import reverb as adders
from acme.agents.tf.actors import RecurrentActor
from acme.agents.tf.r2d2 import learning
from acme.tf import networks
from acme.tf import utils as tf_utils
from acme.tf.networks import base, duelling, embedding
from acme.utils import loggers
from acme.wrappers.observation_action_reward import OAR

from benchmarks.rivals import protocol
from benchmarks.rivals.protocol import Settings

_EPSILON = 0.05


def _make_network(settings: Settings) -> base.RNNCore:
    """The network that `acme_unpadded` asks for.

    Acme's own pads its convolutions, so that they and the LSTM behind them do twice the work, has
    sizes of its own, and takes frames that were made floats when they were seen.
    """
    if settings["acme_unpadded"]:
        return _UnpaddedNetwork(settings["config"], settings["num_actions"])
    return networks.R2D2AtariNetwork(settings["num_actions"])


class _UnpaddedNetwork(base.RNNCore):
    """Acme's own `R2D2AtariNetwork`, but unpadded, of any size, and on frames as stored."""

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
        layers: list[Any] = []
        for outputs, kernel, stride in ((32, 8, 4), (64, 4, 2), (64, 3, 1)):
            layers += [snt.Conv2D(outputs, kernel, stride, padding="VALID"), tf.nn.relu]
        self._layers = snt.Sequential([*layers, snt.Flatten()])

    def __call__(self, images: tf.Tensor) -> tf.Tensor:
        return self._layers(tf.cast(images, tf.float32) / 255.0)


def _environment_spec(settings: Settings) -> specs.EnvironmentSpec:
    """The game's, as Acme's wrappers would give it."""
    actions = specs.DiscreteArray(settings["num_actions"])
    frame = specs.Array(settings["image"], np.uint8 if settings["acme_unpadded"] else np.float32)
    reward = specs.Array((), np.float32)
    return specs.EnvironmentSpec(
        observations=OAR(frame, actions, reward),
        actions=actions,
        rewards=reward,
        discounts=specs.BoundedArray((), np.float32, 0.0, 1.0),
    )


def _noise(spec: specs.Array, rng: np.random.Generator) -> np.ndarray:
    """A frame, or an array of them, as `spec` has it: bytes, or floats from 0 to 1."""
    pixels = rng.integers(256, size=spec.shape, dtype=np.uint8)
    return pixels if spec.dtype == np.uint8 else np.divide(pixels, 255, dtype=spec.dtype)


def actor(settings: Settings) -> Callable[[], object]:
    """The choice of one action, with the policy that Acme's R2D2 acts with."""
    spec = _environment_spec(settings)
    network = _make_network(settings)
    tf_utils.create_variables(network, [spec.observations])
    policy = snt.DeepRNN([network, lambda q: trfl.epsilon_greedy(q, epsilon=_EPSILON).sample()])
    acting = RecurrentActor(policy)
    frames = _noise(spec.observations.observation, np.random.default_rng(0))
    observation = OAR(frames, np.int32(0), np.float32(0))
    return lambda: acting.select_action(observation)


def learner(settings: Settings) -> Callable[[], object]:
    """One step of the learner, which reads the same batch every time."""
    config, spec = settings["config"], _environment_spec(settings)
    network, target = (_make_network(settings) for _ in range(2))
    for module in (network, target):
        tf_utils.create_variables(module, [spec.observations])
    learning_ = learning.R2D2Learner(
        environment_spec=spec,
        network=network,
        target_network=target,
        burn_in_length=config["burn_in"],
        sequence_length=config["burn_in"] + config["length"] + 1,
        dataset=_dataset(config, spec, network.initial_state(1).hidden.shape[-1]),
        logger=loggers.NoOpLogger(),
        discount=config["discount"],
        target_update_period=config["target_update_period"],
        importance_sampling_exponent=config["importance_exponent"],
        max_replay_size=config["replay_size"],
        learning_rate=config["learning_rate"],
        max_priority_weight=config["eta"],
        n_step=config["n_step"],
        clip_grad_norm=config["max_gradient_norm"],
    )
    # `learner.step` adds a count and a log to this, and may return before the work is done.
    return lambda: learning_._step()["loss"].numpy()


def _dataset(config: Settings, spec: specs.EnvironmentSpec, state_size: int) -> tf.data.Dataset:
    """One batch for ever, batch-major as Acme's replay gives it."""
    size, rows = config["batch_size"], config["burn_in"] + config["length"] + 1
    image, num_actions = spec.observations.observation, spec.actions.num_values
    rng = np.random.default_rng(0)

    def integers() -> tf.Tensor:
        return tf.constant(rng.integers(num_actions, size=[size, rows]), tf.int32)

    def normal(*shape: int) -> tf.Tensor:
        return tf.constant(rng.normal(size=[size, rows, *shape]), tf.float32)

    frames = tf.constant(_noise(image.replace(shape=(size, rows, *image.shape)), rng))
    step = adders.Step(
        observation=OAR(frames, integers(), normal()),
        action=integers(),
        reward=normal(),
        discount=tf.ones([size, rows]),
        start_of_episode=tf.zeros([size, rows], tf.bool),
        extras={"core_state": snt.LSTMState(*(0.1 * normal(state_size) for _ in range(2)))},
    )
    info = reverb.SampleInfo(*(tf.ones([size], kind) for kind in reverb.SampleInfo.tf_dtypes()))
    return tf.data.Dataset.from_tensors(reverb.ReplaySample(info=info, data=step)).repeat()


if __name__ == "__main__":
    protocol.serve({"actor": actor, "learner": learner}, ["dm-acme", "dm-sonnet", "trfl"])
