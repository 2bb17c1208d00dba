"""The count of useful work, against a hand count and against TensorFlow's own."""

import math
from typing import Any

import numpy as np
import pytest
import sonnet as snt
import tensorflow as tf
from acme import specs

from agents.actor import network_input
from agents.popart import agent as popart
from benchmarks import flops
from r2d2 import agent as r2d2
from tests.batches import NUM_ACTIONS, environment_spec
from tests.small_agents import small_config
from tests.tensor_ops.vectors import lanes

_SIDE = 44
_SPEC = environment_spec((_SIDE, _SIDE), np.uint8)
_SMALL: dict[str, Any] = dict(length=3, frame_stack=2, lstm_size=6)


def test_a_hand_count_of_a_tiny_update() -> None:
    config = small_config("r2d2", torso="dqn", frame_stack=1, batch_size=2, burn_in=3, length=4)
    # 36 x 36 x 1: convolutions give 8 x 8 x 32, 3 x 3 x 64, 1 x 1 x 64. LSTM of 6, head of 7.
    first = 2 * (8 * 8 * 1 * 32) * 64
    second = 2 * (4 * 4 * 32 * 64) * 9
    third = 2 * (3 * 3 * 64 * 64) * 1
    lstm = 2 * (64 + NUM_ACTIONS + 1 + 6) * 24
    head = 2 * (6 * 7 + 7 * NUM_ACTIONS + 6 * 7 + 7 * 1)
    body = first + second + third + lstm
    forward = 2 * ((3 + 4 + 1) * body + (4 + 1) * head)  # online and target
    backward = 4 * (first + 2 * (second + third + lstm + head))
    head = _head(r2d2.make(config), environment_spec((36, 36), np.uint8))
    assert flops.per_update(config, [36, 36, 1], NUM_ACTIONS, head, 2) == 2 * (forward + backward)


@pytest.mark.parametrize(
    ("agent", "names"),
    [
        (r2d2.make(small_config("r2d2", torso="dqn")), "dqn"),
        (r2d2.make(small_config("r2d2", torso="shallow", lstm_size=0)), "shallow"),
        (r2d2.make(small_config("r2d2", torso="strided")), "strided"),
        (popart.make(popart.Config(num_tasks=5, torso="resnet", **_SMALL)), "popart"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_the_forward_pass_costs_what_tensorflow_counts(agent: Any, names: str) -> None:
    image = [_SIDE, _SIDE, agent.frame_stack]
    body, head = flops.network_weights(agent.config, image, NUM_ACTIONS, _head(agent, _SPEC))
    assert 2 * sum([*body, *head]) == _operations_of_a_step(agent, _SPEC)


def _head(agent: Any, spec: specs.EnvironmentSpec) -> snt.Module:
    head: snt.Module = agent.make_network(spec).head
    return head


def _operations_of_a_step(agent: Any, spec: specs.EnvironmentSpec) -> int:
    """Operations of the convolutions and matrix products in the graph of one step."""
    network = agent.make_network(spec)
    inputs = tf.nest.map_structure(tf.constant, network_input(spec, agent.frame_stack))
    step = tf.function(network.step)
    with lanes(0):  # as operations of TensorFlow's
        graph = step.get_concrete_function(inputs, network.initial_state(1)).graph
    return sum(_operations(operation) for operation in graph.get_operations())


def _operations(operation: tf.Operation) -> int:
    if operation.type not in ("Conv2D", "MatMul"):
        return 0
    weights = operation.inputs[1].shape
    rows = operation.outputs[0].shape[:-1]
    return 2 * math.prod(weights) * math.prod(rows)
