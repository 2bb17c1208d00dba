"""The count of useful work, against a count by hand."""

import numpy as np

from agents.actor import with_variables
from benchmarks import flops
from r2d2 import agent as r2d2
from tests.batches import NUM_ACTIONS, environment_spec
from tests.r2d2.batches import small_config


def test_a_hand_count_of_a_tiny_update() -> None:
    config = small_config(torso="dqn", frame_stack=1, batch_size=2, burn_in=3, length=4)
    # 36 x 36 x 1: convolutions give 8 x 8 x 32, 3 x 3 x 64, 1 x 1 x 64. LSTM of 6, head of 7.
    first = 2 * (8 * 8 * 1 * 32) * 64
    second = 2 * (4 * 4 * 32 * 64) * 9
    third = 2 * (3 * 3 * 64 * 64) * 1
    lstm = 2 * (64 + NUM_ACTIONS + 1 + 6) * 24
    head = 2 * (6 * 7 + 7 * NUM_ACTIONS + 6 * 7 + 7 * 1)
    body = first + second + third + lstm
    forward = 2 * ((3 + 4 + 1) * body + (4 + 1) * head)  # online and target
    backward = 4 * (first + 2 * (second + third + lstm + head))
    agent, spec = r2d2.make(config), environment_spec((36, 36), np.uint8)
    network = with_variables(agent.make_network(spec), spec, frame_stack=1)
    assert flops.per_update(agent, network, spec, 2) == 2 * (forward + backward)
