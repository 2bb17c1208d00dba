"""The defaults are the paper's, and impossible values are refused."""

import dataclasses
import itertools
from typing import Any

import numpy as np
import pytest

from agents.impala.agent import ATARI, CONTROL, CONTROL_IMAGE, DMLAB, Config, make
from replay.structures import TableSpec
from tests.batches import random_batch
from tests.small_agents import make_update, small_config

TABLE_F1 = {
    "frame_stack": 4,
    "life_loss": True,
    "reward_transform": "clip",
    "length": 20,
    "batch_size": 32,
    "discount": 0.99,
    "baseline_cost": 0.5,
    "entropy_cost": 0.01,
    "rmsprop_momentum": 0.0,
    "rmsprop_epsilon": 0.01,
    "learning_rate": 0.0006,
    "max_gradient_norm": 40.0,
    "final_learning_rate": 0.0,
    "annealing_frames": 200_000_000,  # Section 5.3.2
    "frames_per_step": 4,
}
TABLE_C3 = {  # DMLab-30, including experts
    "length": 100,
    "reward_transform": "asymmetric",
    "discount": 0.99,
    "baseline_cost": 0.5,
    "rmsprop_momentum": 0.0,
    "replay_size": 10_000,
}
TABLE_3 = {  # Zahavy et al. 2020, control; and Table 2
    "length": 40,
    "period": 10,
    "batch_size": 24,
    "discount": 0.99,
    "lambda_": 1.0,
    "baseline_cost": 0.5,  # g_v 0.25 without the half
    "entropy_cost": 0.01,
    "learning_rate": 1e-3,
    "final_learning_rate": 1e-4,
    "annealing_frames": 30_000_000,
    "rmsprop_decay": 0.99,
    "rmsprop_epsilon": 0.1,
    "frame_stack": 1,
    "hidden_sizes": (256, 256),
    "lstm_size": 256,
}
SECTION_5_2_2 = {"correction": "vtrace", "rho_bar": 1.0, "c_bar": 1.0, "lambda_": 1.0}


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        (ATARI, {**TABLE_F1, **SECTION_5_2_2, "torso": "resnet", "lstm_size": 0}),
        (DMLAB, {**TABLE_C3, **SECTION_5_2_2, "torso": "resnet", "lstm_size": 256}),
        (CONTROL, {**TABLE_3, **SECTION_5_2_2, "torso": "mlp"}),
        (CONTROL_IMAGE, {**TABLE_3, **SECTION_5_2_2, "torso": "strided"}),
    ],
    ids=["atari", "dmlab", "control", "control_image"],
)
def test_every_value_of_the_papers_tables(config: Config, expected: dict[str, Any]) -> None:
    values = dataclasses.asdict(config)
    assert {name: values[name] for name in expected} == expected
    assert config.burn_in == config.policy_lag == config.replay_fraction == 0


def test_an_update_of_overlapping_unrolls_brings_the_frames_that_no_other_had() -> None:
    """An actor's unrolls of 40 begin 10 steps apart; 24 of them make a batch."""
    starts, seen, news = itertools.count(0, 10), set[int](), []
    for _ in range(5):
        batch = [range(start, start + 40) for start in itertools.islice(starts, 24)]
        rows = {row for unroll in batch for row in unroll}
        news.append(len(rows - seen))
        seen |= rows
    assert news[1:] == [CONTROL.frames_per_update] * 4
    assert CONTROL.annealing_updates == 125_000
    half = dataclasses.replace(CONTROL, replay_fraction=0.5, frames_per_step=4)
    assert half.frames_per_update == 12 * 10 * 4


def test_without_a_period_unrolls_follow_one_another() -> None:
    assert Config().layout.period == Config().length
    assert Config(length=8).layout.period == 8
    assert Config(length=8, period=8) != Config(length=8)  # but the same layout
    assert Config(length=8, period=8).layout == Config(length=8).layout


@pytest.mark.parametrize(
    ("field", "value", "sentence"),
    [
        ("queue_size", 33, r"queue_size must be more than a batch and one \(33\), .* got 33"),
        ("replay_fraction", 0.3, "must give a whole number of a batch of 32, got 0.3"),
        ("rho_bar", 0.5, r"c_bar must be at most rho_bar \(0.5\), got 1.0"),
        ("c_bar", 1.5, r"c_bar must be at most rho_bar \(1.0\), got 1.5"),
        ("period", 21, r"period must be at most length \(20\), or steps .* trained; got 21"),
        ("log_sigma_min", 2.5, r"log_sigma_min must be at most log_sigma_max \(2\), got 2.5"),
    ],
)
def test_impossible_values_are_refused(field: str, value: Any, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        Config(**{field: value})


def test_a_whole_number_is_a_rate_too() -> None:
    config = small_config("impala", learning_rate=1)
    assert np.isfinite(make_update(config)(random_batch(config))[1]["loss"])


def test_half_of_a_batch_from_replay() -> None:
    """Section 5.2.2 and Table C.3."""
    for size, fraction, replayed in ((100, 0.29, 29), (100, 0.57, 57), (25, 0.28, 7)):
        assert Config(batch_size=size, replay_fraction=fraction, queue_size=999).num_replayed == (
            replayed
        )
    config = Config(replay_fraction=0.5)
    agent = make(config, "other")
    assert agent.tables == (
        TableSpec("other", "queue", config.layout, max_size=64),
        TableSpec("other_replay", "uniform", config.layout, max_size=10_000),
    )
    assert agent.batch_sizes == (16, 16)
    assert agent.batch_size == 32
