"""The defaults are the paper's, and impossible values are refused."""

import dataclasses
from typing import Any

import pytest

from agents.actor import network_input
from agents.impala import agent as impala
from agents.popart.agent import ATARI, DMLAB, MULTIHEAD_ATARI, MULTIHEAD_DMLAB, Config, make
from agents.popart.statistics import PopArt
from tests.batches import environment_spec
from tests.small_agents import NUM_TASKS, make_update, small_config

TABLE_3 = {"statistics_decay": 3e-4, "scale_min": 1e-4, "scale_max": 1e6}
TABLE_6 = {"discount": 0.99, "baseline_cost": 0.5, "batch_size": 32, "rmsprop_momentum": 0.0}
ATARI_TABLES = {  # 5, 6 and 7
    "frame_stack": 4,
    "life_loss": True,
    "reward_transform": "none",
    "length": 20,
    "torso": "resnet",
    "lstm_size": 0,
}
DMLAB_TABLES = {  # 4, 6 and 7
    "frame_stack": 1,
    "life_loss": False,
    "reward_transform": "asymmetric",
    "length": 100,
    "torso": "resnet",
    "lstm_size": 256,
}


@pytest.mark.parametrize(
    ("config", "expected"), [(ATARI, ATARI_TABLES), (DMLAB, DMLAB_TABLES)], ids=["atari", "dmlab"]
)
def test_every_value_of_the_papers_tables(config: Config, expected: dict[str, Any]) -> None:
    expected = {**TABLE_3, **TABLE_6, **expected}
    values = dataclasses.asdict(config)
    assert {name: values[name] for name in expected} == expected
    assert config.normalise


@pytest.mark.parametrize(
    ("ours", "impalas"), [(ATARI, impala.ATARI), (DMLAB, impala.DMLAB)], ids=["atari", "dmlab"]
)
def test_the_rest_is_impalas(ours: Config, impalas: impala.Config) -> None:
    theirs, values = dataclasses.asdict(impalas), dataclasses.asdict(ours)
    different = {name for name in theirs if values[name] != theirs[name]}
    assert different <= {"reward_transform", "torso"}


def test_the_baseline_differs_in_nothing_else() -> None:
    for baseline, config in [(MULTIHEAD_ATARI, ATARI), (MULTIHEAD_DMLAB, DMLAB)]:
        assert dataclasses.replace(baseline, normalise=True) == config
        assert not baseline.normalise


def test_an_impossible_value_is_refused() -> None:
    sentence = r"scale_min must be at most scale_max \(1000000.0\), got 10000000.0"
    with pytest.raises(ValueError, match=sentence):
        Config(scale_min=1e7)


@pytest.mark.parametrize("normalise", [True, False])
def test_a_value_and_statistics_for_each_task(normalise: bool) -> None:
    config = small_config("popart", normalise=normalise)
    update = make_update(config)
    network = make(config).make_network(environment_spec())
    inputs, state = network_input(environment_spec(), 1), update.network.initial_state(1)
    output, _ = update.learned_network.step(inputs, state)
    assert output.value.shape == (1, NUM_TASKS)
    for acting, learning in zip(network.variables, update.network.variables, strict=True):
        assert acting.shape == learning.shape
    assert any(isinstance(m, PopArt) for m in update.submodules) == normalise
