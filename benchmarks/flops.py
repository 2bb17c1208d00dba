"""Counts the useful work of one update, as its equations are written.

Only convolutions and matrix products count, two operations for each multiplication with its
addition; that Winograd's convolutions need fewer makes the same work faster. Of a layer with W
weights that is applied at P positions of one row:

    forward                              2 W P
    gradient of the weights              2 W P
    gradient of the inputs               2 W P, for the first layer none: frames need no gradient

An item of R2D2 has M = burn_in rows that only warm up, L = length trained rows, and the row to
bootstrap from:

    online network   M + L + 1 rows forward, L + 1 of them through the head, and L backward
    target network   M + L + 1 rows forward, L + 1 of them through the head

A V-trace unroll is the first line alone. Element-wise operations, the optimizer and auxiliary
losses do not count.
"""

import math

import sonnet as snt
import tensorflow as tf
import tree
from acme import specs

from agents.actor import network_input
from agents.contract import Agent
from agents.networks.network import RecurrentNetwork
from tensor_ops.loops import without_loops


def per_update(
    agent: Agent, network: RecurrentNetwork, spec: specs.EnvironmentSpec, num_networks: int
) -> int:
    """Useful operations of one update by so many networks; a target network counts as one."""
    config = agent.config
    everything, head = layers(network, spec, agent.frame_stack), sum(head_layers(network.head))
    body = sum(everything) - head
    evaluated = (config.burn_in + config.length + 1) * body + (config.length + 1) * head
    gradients = 2 * (body + head) - everything[0]
    return 2 * config.batch_size * (num_networks * evaluated + config.length * gradients)


def layers(network: RecurrentNetwork, spec: specs.EnvironmentSpec, frame_stack: int) -> list[int]:
    """W P of each convolution and matrix product in one step, the first layer's first."""
    inputs = tree.map_structure(tf.constant, network_input(spec, frame_stack))
    with without_loops():
        step = tf.function(network.step)
        graph = step.get_concrete_function(inputs, network.initial_state(1)).graph
    return [
        math.prod(op.inputs[1].shape) * math.prod(op.outputs[0].shape[:-1])
        for op in graph.get_operations()
        if op.type in ("Conv2D", "MatMul")
    ]


def head_layers(head: snt.Module) -> list[int]:
    """W of each layer of a head that has been called: all are fully connected."""
    weights = [variable.shape for variable in head.trainable_variables if variable.shape.rank == 2]
    return [math.prod(shape) for shape in weights]
