"""The count of useful work, against a count by hand and the figures on the pages."""

import numpy as np
import pytest

from agents.actor import with_variables
from agents.networks.network import RecurrentNetwork
from benchmarks import flops, measuring, performance, study, subject
from r2d2 import agent as r2d2
from tests.batches import NUM_ACTIONS, environment_spec
from tests.small_agents import small_config


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
    agent, spec = r2d2.make(config), environment_spec((36, 36), np.uint8)
    network = with_variables(agent.make_network(spec), spec, frame_stack=1)
    assert isinstance(network, RecurrentNetwork)
    assert flops.per_update(agent, network, spec, 2) == 2 * (forward + backward)


@pytest.mark.repository
@pytest.mark.parametrize(
    ("agent", "overrides"),
    [
        ("r2d2", {}),
        ("impala", {}),
        ("impala", dict(torso="shallow", lstm_size="256")),
        ("popart", {}),
    ],
    ids=["dqn", "resnet", "shallow", "popart"],
)
def test_the_count_is_the_one_on_the_pages(agent: str, overrides: dict[str, str]) -> None:
    measured = subject.make(agent, "paper", {agent: overrides})
    own = {name: getattr(measured.agent.config, name) for name in ("torso", "lstm_size")}
    told = {
        line["figures"]["useful_work_of_an_update"]["value"]
        for line in study.read_lines(performance.DATA)
        if line["benchmark"] == "learner"
        and line["settings"]["agent"] == agent
        and line["settings"]["config"].items() >= own.items()
        and line["settings"]["config"]["batch_size"] == measured.agent.batch_size
    }
    made, spec = measured.agent, measured.spec
    network = with_variables(made.make_network(spec), spec, made.frame_stack)
    assert isinstance(network, RecurrentNetwork)
    work = flops.per_update(made, network, spec, measured.entry.networks)
    assert {measuring.single(work / 1e9, "GFLOP")["value"]} == told
