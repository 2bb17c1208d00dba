"""The defaults are the papers', what cannot be is refused, and one table is made."""

from typing import Any

import numpy as np
import pytest
from acme import specs

from agents.rsac.agent import CONTROL, CONTROL_IMAGE, Config, make
from replay.structures import TableSpec
from tests.batches import environment_spec
from tests.small_agents import small_config

SAC = dict(
    discount=0.99,
    learning_rate=3e-4,
    tau=0.005,
    target_entropy=None,
    head_hidden_sizes=(256, 256),
    n_step=1,
    initial_temperature=1.0,
    log_sigma_min=-20.0,
    log_sigma_max=2.0,
)
R2D2 = dict(burn_in=40, length=80, period=40, batch_size=64, eta=0.9, max_gradient_norm=40.0)
PRIORITIES = dict(priority_exponent=0.9, importance_exponent=0.6)


def test_the_defaults_are_the_papers() -> None:
    for name, value in (SAC | R2D2 | PRIORITIES | dict(lstm_size=128)).items():
        assert getattr(Config(), name) == value, name
    assert Config() == CONTROL
    assert Config(torso="strided") == CONTROL_IMAGE
    assert CONTROL.samples_per_insert == 128.0
    steps = 128.0 * CONTROL.length / CONTROL.period  # of each new one
    assert steps == 256
    assert CONTROL.replay_size * CONTROL.period == 10**6


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        (dict(period=81), r"period must be at most length \(80\)"),
        (dict(min_replay_size=25_001), r"at most replay_size \(25000\), .* got 25001"),
        (dict(log_sigma_min=3.0), r"log_sigma_min must be at most log_sigma_max \(2\), got 3"),
        (dict(tau=0.0), "tau must be a number from 1e-06 to 1, got 0"),
        (dict(initial_temperature=0.0), "initial_temperature must be a number from 1e-06"),
        (dict(head_hidden_sizes=()), "head_hidden_sizes must be 1 to 64 layers"),
        (dict(head_hidden_sizes=(30_000, 30_000)), "must come to 268,435,456 weights"),
        (dict(lstm_size=30_000), "must come to 268,435,456 weights"),
    ],
)
def test_impossible_values_are_refused(changes: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        Config(**changes)


def test_one_prioritized_table() -> None:
    assert make(CONTROL).tables == (
        TableSpec(
            name="rsac",
            kind="prioritized",
            layout=CONTROL.layout,
            max_size=25_000,
            min_size=250,
            samples_per_insert=128.0,
            priority_exponent=0.9,
        ),
    )


@pytest.mark.parametrize(
    "actions",
    [specs.DiscreteArray(4), specs.BoundedArray((2,), np.int32, 0, [2, 3])],
    ids=["one", "several"],
)
def test_whole_numbers_as_actions_are_refused_with_a_sentence(actions: specs.BoundedArray) -> None:
    agent = make(small_config("rsac"))
    for build in (agent.make_network, agent.make_update):
        with pytest.raises(ValueError, match=r"needs actions that are vectors .* numbers up to 3;"):
            build(environment_spec()._replace(actions=actions))
