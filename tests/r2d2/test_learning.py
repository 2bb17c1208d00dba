"""R2D2 solves a task that needs a memory; without its core it stays at the memoryless optimum."""

import dataclasses
import math
from typing import Any

import pytest

from r2d2 import agent as r2d2
from tests.memory_marks import MEMORYLESS_OPTIMUM, PASS_MARK
from tests.training import R2D2, train

SMALL: dict[str, Any] = R2D2 | dict(
    torso="mlp", hidden_sizes=(64,), head_size=64, frame_stack=1, variable_update_period=4
)


def mean_return(
    name: str, env: str, vector_steps: int, until: float = math.inf, **changes: Any
) -> float:
    config = dataclasses.replace(r2d2.VARIANTS[name], **SMALL, **changes)
    return train(
        r2d2.make(config, name),
        env,
        num_environments=32,
        vector_steps=vector_steps,
        until=until,
        steps_per_update=2,
        seed=1,
    )


def test_r2d2_passes_the_recall_task() -> None:
    """1,600 steps are enough here. While it trains, exploring costs a tenth of what is returned."""
    mark = PASS_MARK["recall"]
    assert mean_return("r2d2", "memory:recall", 3_200, until=mark, lstm_size=64) >= mark


@pytest.mark.slow
def test_without_a_core_it_stays_at_the_memoryless_optimum() -> None:
    # 200 episodes of ±1 have a standard error of 0.06; the pass mark is 20 of them away.
    reached = mean_return("r2d2_feedforward", "memory:recall", 1_600)
    assert abs(reached - MEMORYLESS_OPTIMUM["recall"]) < 0.25


@pytest.mark.slow
@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_without_a_core_it_can_still_learn(precision: str) -> None:
    assert mean_return("r2d2_feedforward", "catch", 1_000, precision=precision) >= 0.9
