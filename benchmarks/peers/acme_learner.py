"""Acme's TensorFlow R2D2 learner on a synthetic batch.

Beside dm-acme it needs the packages gym, trfl and jax, which Acme imports and nothing here does.
"""

import importlib.metadata
from collections.abc import Callable

import numpy as np
import reverb
import sonnet as snt
import tensorflow as tf
from acme import specs
from acme.adders import reverb as adders
from acme.agents.tf.r2d2 import learning
from acme.tf import utils as tf_utils
from acme.utils import loggers
from acme.wrappers.observation_action_reward import OAR

from benchmarks.peers import protocol
from benchmarks.peers.acme_network import environment_spec, make_network, noise


def make_step(settings: protocol.Settings) -> Callable[[], object]:
    """One step of the learner, which reads the same batch every time."""
    config, spec = settings["config"], environment_spec(settings)
    network, target = (make_network(settings) for _ in range(2))
    for module in (network, target):
        tf_utils.create_variables(module, [spec.observations])
    learner = learning.R2D2Learner(
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
    return lambda: learner._step()["loss"].numpy()


def _dataset(
    config: protocol.Settings, spec: specs.EnvironmentSpec, state_size: int
) -> tf.data.Dataset:
    """One batch for ever, batch-major as Acme's replay gives it."""
    size, rows = config["batch_size"], config["burn_in"] + config["length"] + 1
    image, num_actions = spec.observations.observation, spec.actions.num_values
    rng = np.random.default_rng(0)

    def integers() -> tf.Tensor:
        return tf.constant(rng.integers(num_actions, size=[size, rows]), tf.int32)

    def normal(*shape: int) -> tf.Tensor:
        return tf.constant(rng.normal(size=[size, rows, *shape]), tf.float32)

    frames = tf.constant(noise(image.replace(shape=(size, rows, *image.shape)), rng))
    state = snt.LSTMState(*(0.1 * normal(state_size) for _ in range(2)))
    step = adders.Step(
        observation=OAR(frames, integers(), normal()),
        action=integers(),
        reward=normal(),
        discount=tf.ones([size, rows]),
        start_of_episode=tf.zeros([size, rows], tf.bool),
        extras={"core_state": state},
    )
    info = reverb.SampleInfo(*(tf.ones([size], kind) for kind in reverb.SampleInfo.tf_dtypes()))
    return tf.data.Dataset.from_tensors(reverb.ReplaySample(info=info, data=step)).repeat()


def versions() -> dict[str, str]:
    """Of what the step is made of."""
    return {name: importlib.metadata.version(name) for name in ("dm-acme", "dm-sonnet", "trfl")}


if __name__ == "__main__":
    protocol.serve(make_step, versions)
