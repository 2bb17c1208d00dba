"""IMPALA as a record of functions."""

import numpy as np
import pytest

from agents.impala.agent import Config, make
from replay.structures import TableSpec
from tests.agents.impala.batches import small_config
from tests.batches import NUM_ACTIONS, environment_spec


def test_half_of_a_batch_from_replay() -> None:
    """Section 5.2.2 and Table C.3."""
    config = Config(replay_fraction=0.5)
    agent = make(config, "other")
    assert agent.tables == (
        TableSpec("other", "queue", config.layout, max_size=64),
        TableSpec("other_replay", "uniform", config.layout, max_size=10_000),
    )
    assert agent.batch_sizes == (16, 16)
    assert agent.batch_size == 32


@pytest.mark.parametrize(
    ("torso", "shape"), [("shallow", (84, 84)), ("resnet", (72, 96, 3)), ("mlp", (10, 5))]
)
@pytest.mark.parametrize("policy_lag", [0, 2])
def test_networks_have_their_variables_at_once(
    torso: str, shape: tuple[int, ...], policy_lag: int
) -> None:
    agent = make(small_config(torso=torso, frame_stack=2, policy_lag=policy_lag))
    spec = environment_spec(shape, np.uint8)
    network = agent.make_network(spec)
    update = agent.make_update(spec)
    assert len(network.variables) > 0
    for acting, learning in zip(network.variables, update.network.variables, strict=True):
        assert acting.shape == learning.shape
        assert acting.name == learning.name
    logits = [v.shape[-1] for v in network.variables if v.shape[-1] == NUM_ACTIONS]
    assert len(logits) == 2  # weights and bias
