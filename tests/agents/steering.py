"""An agent of bounded actions, as an outside user might write it: reward-weighted regression."""

import math
from collections.abc import Mapping

import numpy as np
import sonnet as snt
import tensorflow as tf
from acme import specs

from agents.actor import with_variables
from agents.contract import Agent, Network, Policy, PolicyOutput
from agents.masking import masked_mean
from agents.networks.core import make_core
from agents.networks.network import RecurrentNetwork
from agents.networks.torsos import make_torso
from replay.structures import Batch, Layout, Nest, NetworkInput, TableSpec

DEVIATION = 0.3  # of the actions around the network's outputs


class SteeringUpdate(tf.Module):
    """Moves the network's outputs towards actions, the more the better they were rewarded."""

    def __init__(self, network: RecurrentNetwork) -> None:
        super().__init__()
        self.network = network
        self._optimizer = snt.optimizers.Adam(0.02)

    @tf.function
    def __call__(self, batch: Batch) -> tuple[None, Mapping[str, tf.Tensor]]:
        with tf.GradientTape() as tape:
            mean, _ = self.network.unroll(batch.inputs, batch.core_state, batch.reset, batch.valid)
            error = tf.reduce_sum(tf.square(mean[:-1] - batch.action), axis=-1)  # [T, B]
            loss = masked_mean(tf.exp(4.0 * batch.reward) * error, batch.mask)
        variables = self.network.trainable_variables
        gradients = tape.gradient(loss, variables)
        self._optimizer.apply(gradients, variables)
        return None, {"loss": loss, "gradient_norm": tf.linalg.global_norm(gradients)}


def make() -> Agent:
    """The agent: unrolls of four steps, in batches of two."""
    layout = Layout(burn_in=0, length=4, period=4, crosses_episodes=True)
    return Agent(
        name="steering",
        config=None,
        tables=(TableSpec("steering", "queue", layout, max_size=8),),
        batch_sizes=(2,),
        frame_stack=1,
        resets_on_life_loss=False,
        variable_update_period=1,
        make_network=_make_network,
        make_policy=lambda network, indices, num_actors, seed: _policy(network, seed, DEVIATION),
        make_evaluation_policy=lambda network, seed: _policy(network, seed, 1e-3),
        make_update=lambda environment_spec: SteeringUpdate(_make_network(environment_spec)),
        initial_priority=None,
        estimates=lambda update, values, task: {},
    )


def _make_network(environment_spec: specs.EnvironmentSpec) -> RecurrentNetwork:
    actions = environment_spec.actions
    head = snt.Linear(actions.shape[0])
    network = RecurrentNetwork(make_torso("mlp", (8,)), make_core(4), head, actions)
    return with_variables(network, environment_spec, frame_stack=1)


def _policy(network: Network, seed: int, deviation: float) -> Policy:
    generator = tf.random.Generator.from_seed(seed)
    low, high = (np.float32(bound) for bound in (network.actions.minimum, network.actions.maximum))

    def policy(inputs: NetworkInput, core_state: Nest) -> PolicyOutput:
        mean, core_state = network.step(inputs, core_state)  # [N, D]
        noise = generator.normal(tf.shape(mean))
        action = tf.clip_by_value(mean + deviation * noise, low, high)
        normaliser = math.log(deviation * math.sqrt(2 * math.pi))
        log_probability = tf.reduce_sum(-tf.square(noise) / 2 - normaliser, axis=-1)
        return PolicyOutput(action, log_probability, {}, core_state)

    return policy
