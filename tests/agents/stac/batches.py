"""Small configs and updates for the tests of STAC, and a network in float64."""

from typing import Any

import numpy as np
import sonnet as snt
import tensorflow as tf
import tree

from agents.impala.losses import Outputs
from agents.networks.core import LSTM
from agents.networks.network import RecurrentNetwork, unroll_trained
from agents.networks.torsos import make_torso
from agents.stac.agent import Config, make
from agents.stac.learner import StacUpdate
from agents.stac.network import Head, Heads
from replay.structures import Batch
from tests.agents.impala.batches import SMALL
from tests.batches import NUM_ACTIONS, environment_spec, random_batch

IMAGE = (20, 20, 1)  # the least that the shallow torso's convolutions take


def small_config(**changes: Any) -> Config:
    """A config whose update takes milliseconds."""
    return Config(**{**SMALL, "head_hidden_sizes": (8,), **changes})


def make_update(config: Config, seed: int = 0) -> StacUpdate:
    """A new update, whose parameters follow from the seed."""
    tf.random.set_seed(seed)
    update = make(config).make_update(environment_spec())
    assert isinstance(update, StacUpdate)
    return update


def in_float64(x: Any) -> Any:
    """A structure of tensors with those of float32 made more exact."""
    return tree.map_structure(lambda y: tf.cast(y, tf.float64) if y.dtype == tf.float32 else y, x)


def batch_of_images(config: Config, seed: int = 0) -> Batch:
    """A random batch in float64 whose observations are images, with an LSTM's state."""
    batch = random_batch(config, seed)
    rng = np.random.default_rng(seed)
    shape = (*batch.reset.shape, *IMAGE)
    images = tf.constant(rng.integers(256, size=shape), tf.uint8)
    return in_float64(batch)._replace(inputs=in_float64(batch.inputs)._replace(observation=images))


def update_in_float64(config: Config, seed: int = 0) -> StacUpdate:
    """An update whose network has convolutions and an LSTM, all of it in float64."""
    tf.random.set_seed(seed)
    heads = [
        Head(NUM_ACTIONS, config.head_hidden_sizes, tf.float32) for _ in range(config.num_heads)
    ]
    network = RecurrentNetwork(
        make_torso("shallow", (), None, tf.float32),
        LSTM(config.lstm_size),
        Heads(heads),
        environment_spec().actions,
    )
    batch = batch_of_images(config)
    single = tree.map_structure(
        lambda x: tf.cast(x, tf.float32) if x.dtype == tf.float64 else x,
        (batch.inputs, batch.core_state, batch.reset, batch.valid),
    )
    network.unroll(*single)  # makes the variables
    for module in (network, *network.submodules):
        _make_float64(module)
    update = StacUpdate(network, config)
    eta = tf.cast(update.metaparameters.eta, tf.float64)
    update.metaparameters.eta = tf.Variable(eta, name="eta")
    update._meta_optimizer = snt.optimizers.SGD(1.0)
    return update


def _make_float64(module: Any) -> None:
    """Gives a module's own variables, and its arithmetic, another precision."""
    for name, value in vars(module).items():
        if isinstance(value, tf.Variable):
            setattr(module, name, tf.Variable(tf.cast(value, tf.float64), name=name))
        elif value is tf.float32:
            setattr(module, name, tf.float64)


def outputs_of(update: StacUpdate, batch: Batch) -> list[Outputs]:
    """What each head says of a batch without burn-in, as arrays."""
    results = []
    for head in update._heads:
        network = RecurrentNetwork(
            update.learned_network._torso,
            update.learned_network.core,
            head,
            update.learned_network.actions,
        )
        output = unroll_trained(network, batch, batch.core_state, batch.reset, 0)
        logits, value = output.logits.numpy(), output.value.numpy()
        results.append(Outputs(logits[:-1], value[..., 0], np.float64(0), np.float64(1)))
    return results
