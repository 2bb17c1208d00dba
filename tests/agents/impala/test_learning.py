"""IMPALA solves catch, a task of continuous actions and, with an LSTM, one that needs a memory."""

from typing import Any

import pytest

from agents.impala.agent import Config, make
from tests.agents import reaching
from tests.memory_marks import MEMORYLESS_OPTIMUM, PASS_MARK
from tests.training import train

SMALL: dict[str, Any] = dict(
    torso="mlp",
    hidden_sizes=(64,),
    frame_stack=1,
    frames_per_step=1,
    learning_rate=5e-3,
    rmsprop_epsilon=1e-3,
)


@pytest.mark.parametrize("replay_fraction", [pytest.param(0.0, marks=pytest.mark.slow), 0.5])
def test_impala_solves_catch(replay_fraction: float) -> None:
    config = Config(
        **SMALL,
        length=10,
        annealing_frames=192_000,
        replay_fraction=replay_fraction,
        replay_size=1_000,
    )
    reached = train(
        make(config), "catch", num_environments=32, vector_steps=6_000, until=0.95, seed=1
    )
    assert reached >= 0.9


def test_impala_with_an_lstm_passes_the_recall_task() -> None:
    config = Config(**SMALL, length=16, annealing_frames=768_000, lstm_size=64)
    reached = train(
        make(config), "memory:recall", num_environments=64, vector_steps=12_000, until=0.9, seed=1
    )
    assert reached >= PASS_MARK["recall"]


@pytest.mark.slow
def test_without_a_core_it_stays_at_the_memoryless_optimum() -> None:
    config = Config(**SMALL, length=16, annealing_frames=512_000)
    # 200 episodes of ±1 have a standard error of 0.06; the pass mark is 20 of them away.
    reached = train(make(config), "memory:recall", num_environments=64, vector_steps=2_000, seed=1)
    assert abs(reached - MEMORYLESS_OPTIMUM["recall"]) < 0.25


def test_impala_reaches_what_it_sees() -> None:
    """Unrolls overlap by half, so that each step is learned from twice."""
    config = Config(**reaching.SMALL)
    reached = train(make(config), reaching.IN_SIGHT, **reaching.TRAINING)
    assert reached > reaching.BLIND + 1.2


@pytest.mark.slow
def test_impala_with_an_lstm_reaches_what_it_has_seen() -> None:
    config = Config(**reaching.SMALL | dict(lstm_size=32))
    training = reaching.TRAINING | dict(vector_steps=1_500)
    reached = train(make(config), reaching.REMEMBERED, **training)
    assert reached > reaching.FORGETFUL + 0.4
