"""STAC and STACX solve catch, a continuous task and, with an LSTM, one that needs a memory."""

from typing import Any

import pytest

from agents.stac.agent import Config, make
from tests.agents import reaching
from tests.memory_marks import PASS_MARK
from tests.training import train

SMALL: dict[str, Any] = dict(
    torso="mlp",
    hidden_sizes=(64,),
    head_hidden_sizes=(32,),
    frame_stack=1,
    frames_per_step=1,
    learning_rate=5e-3,
    rmsprop_epsilon=1e-3,
    max_gradient_norm=40.0,
)


@pytest.mark.slow
@pytest.mark.parametrize(("num_heads", "rate"), [(1, 5e-3), (3, 8e-3)], ids=["stac", "stacx"])
def test_it_solves_catch(num_heads: int, rate: float) -> None:
    config = Config(
        **SMALL | dict(learning_rate=rate), length=10, annealing_frames=160_000, num_heads=num_heads
    )
    reached = train(
        make(config), "catch", num_environments=32, vector_steps=5_000, until=0.95, seed=1
    )
    assert reached >= 0.9


@pytest.mark.parametrize(
    "num_heads", [pytest.param(1, marks=pytest.mark.slow, id="stac"), pytest.param(3, id="stacx")]
)
def test_with_an_lstm_it_passes_the_recall_task(num_heads: int) -> None:
    config = Config(
        **SMALL | dict(learning_rate=1e-2),
        length=16,
        annealing_frames=288_000,
        lstm_size=64,
        num_heads=num_heads,
    )
    reached = train(
        make(config), "memory:recall", num_environments=64, vector_steps=4_500, until=0.9, seed=1
    )
    assert reached >= PASS_MARK["recall"]


@pytest.mark.slow
@pytest.mark.parametrize("num_heads", [1, 3], ids=["stac", "stacx"])
def test_it_reaches_what_it_sees(num_heads: int) -> None:
    config = Config(**reaching.SMALL, head_hidden_sizes=(32,), num_heads=num_heads)
    reached = train(make(config), reaching.IN_SIGHT, **reaching.TRAINING)
    assert reached > reaching.BLIND + 0.9
