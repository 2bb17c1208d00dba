"""Updates in float64 for the tests of STAC, and the outputs of their heads."""

import functools
from typing import Any

import numpy as np
import sonnet as snt
import tensorflow as tf
import tree
from acme import specs

from agents.impala.distributions import form_of, without_last
from agents.impala.network import ActorCriticHead
from agents.impala.vtrace import Outputs
from agents.networks.core import LSTM
from agents.networks.network import RecurrentNetwork, unroll_trained
from agents.networks.perceptron import Perceptron
from agents.networks.torsos import make_torso
from agents.stac.config import Config
from agents.stac.learner import StacUpdate
from agents.stac.network import Heads
from replay.structures import Batch
from tests.batches import environment_spec, random_batch

IMAGE = (20, 20, 1)  # the least that the shallow torso's convolutions take


def in_float64(x: Any) -> Any:
    """Casts a structure's tensors of float32 to float64."""
    return tree.map_structure(lambda y: tf.cast(y, tf.float64) if y.dtype == tf.float32 else y, x)


BOUNDED = specs.BoundedArray((2,), np.float32, -1, 3, "action")


def batch_of_images(config: Config, seed: int = 0, *, continuous: bool = False) -> Batch:
    """A random batch in float64 whose observations are images, with an LSTM's state."""
    batch = random_batch(config, seed)
    rng = np.random.default_rng(seed)
    shape = (*batch.reset.shape, *IMAGE)
    images = tf.constant(rng.integers(256, size=shape), tf.uint8)
    batch = in_float64(batch)
    batch = batch._replace(inputs=in_float64(batch.inputs)._replace(observation=images))
    if not continuous:
        return batch
    # As an initial network's: the mean near 0, σ near exp(-1.5).
    action = tf.constant(rng.normal(size=(*batch.action.shape, 2)) / 4)
    previous = tf.constant(rng.normal(size=(*batch.reset.shape, 2)) / 4)
    log_probability = tf.constant(rng.normal(size=batch.action.shape) - 0.5)
    return batch._replace(
        action=action,
        log_probability=log_probability,
        inputs=batch.inputs._replace(previous_action=previous),
    )


def update_in_float64(config: Config, seed: int = 0, *, continuous: bool = False) -> StacUpdate:
    """An update whose network has convolutions and an LSTM, all of it in float64."""
    tf.random.set_seed(seed)
    actions = BOUNDED if continuous else environment_spec().actions
    form = form_of(actions)
    layer = functools.partial(Perceptron, hidden_sizes=config.head_hidden_sizes, dtype=tf.float32)
    heads = [ActorCriticHead(form, layer=layer) for _ in range(config.num_heads)]
    network = RecurrentNetwork(
        make_torso("shallow", (), None, tf.float32), LSTM(config.lstm_size), Heads(heads), actions
    )
    batch = batch_of_images(config, continuous=continuous)
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
    """Each head's outputs for a batch without burn-in, as arrays."""
    results = []
    for head in update._heads:
        network = RecurrentNetwork(
            update.learned_network._torso,
            update.learned_network.core,
            head,
            update.learned_network.actions,
        )
        output = unroll_trained(network, batch, batch.core_state, batch.reset, 0, learns=False)
        policy = tree.map_structure(lambda x: x.numpy(), without_last(output.policy))
        value = output.value.numpy()
        results.append(Outputs(policy, value[..., 0], np.float64(0), np.float64(1)))
    return results
