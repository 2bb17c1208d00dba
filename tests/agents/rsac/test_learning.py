"""Recurrent SAC learns a task of vectors that needs a memory; without its core it cannot."""

from typing import Any

import pytest

from agents.networks.named import CORES
from agents.rsac.agent import Config, make
from tests.agents import reaching
from tests.training import train

SMALL: dict[str, Any] = dict(
    hidden_sizes=(32,),
    head_hidden_sizes=(32,),
    lstm_size=32,
    burn_in=0,
    length=5,
    period=5,
    replay_size=5_000,
    min_replay_size=50,
    batch_size=32,
    discount=0.9,
    learning_rate=3e-3,
    tau=0.02,
    variable_update_period=1,
)
MOST = 0.8 * reaching.NUM_STEPS


@pytest.mark.parametrize(
    "core", [pytest.param(core, marks=[pytest.mark.slow] * (core != "lstm")) for core in CORES]
)
def test_it_remembers_what_it_saw(core: str) -> None:
    reached = train(make(Config(**SMALL, core=core)), reaching.REMEMBERED, **reaching.TRAINING)
    assert reached > MOST > reaching.FORGETFUL + 0.3


@pytest.mark.slow
def test_without_a_core_it_learns_no_more_than_a_memory_is_not_needed_for() -> None:
    config = Config(**SMALL | dict(lstm_size=0))
    reached = train(make(config), reaching.REMEMBERED, **reaching.TRAINING)
    assert reaching.BLIND < reached < reaching.FORGETFUL + 0.2
