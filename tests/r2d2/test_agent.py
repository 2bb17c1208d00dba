"""R2D2 as a record of functions."""

import numpy as np
import pytest

from r2d2.agent import Config, make
from replay.structures import TableSpec
from tests.batches import NUM_ACTIONS, environment_spec
from tests.r2d2.batches import small_config


def test_one_prioritized_table_as_the_paper_has_it() -> None:
    config = Config()
    assert make(config).tables == (
        TableSpec(
            name="r2d2",
            kind="prioritized",
            layout=config.layout,
            max_size=100_000,
            min_size=1_250,
            samples_per_insert=None,
            priority_exponent=0.9,
        ),
    )


@pytest.mark.parametrize(("life_loss", "resets"), [("none", 0), ("roll", 0), ("reset", 1)])
def test_only_reset_resets_the_core_state(life_loss: str, resets: int) -> None:
    assert make(small_config(life_loss=life_loss)).resets_on_life_loss == bool(resets)


@pytest.mark.parametrize(
    ("torso", "shape"), [("dqn", (84, 84)), ("resnet", (72, 96, 3)), ("mlp", (10, 5))]
)
def test_networks_have_their_variables_at_once(torso: str, shape: tuple[int, ...]) -> None:
    agent = make(small_config(torso=torso, frame_stack=2))
    spec = environment_spec(shape, np.uint8)
    network = agent.make_network(spec)
    count = len(network.trainable_variables)
    assert count > 0
    update = agent.make_update(spec)
    assert len(update.network.variables) == count
    for acting, learning in zip(network.variables, update.network.variables, strict=True):
        assert acting.shape == learning.shape
        assert acting.name == learning.name
    q_shape = [v.shape[-1] for v in network.variables if v.shape[-1] == NUM_ACTIONS]
    assert len(q_shape) == 2  # weights and bias of the last advantage layer
