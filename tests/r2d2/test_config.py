"""The defaults are the paper's, and impossible values are refused."""

import dataclasses
from typing import Any

import pytest

from r2d2.agent import DMLAB_VARIANTS, VARIANTS, Config, make
from replay.structures import TableSpec
from tests.small_agents import small_config

TABLE_2 = {
    "variable_update_period": 400,
    "length": 80,
    "burn_in": 40,
    "replay_size": 10**5,
    "priority_exponent": 0.9,
    "importance_exponent": 0.6,
    "discount": 0.997,
    "batch_size": 64,
    "learning_rate": 1e-4,
    "adam_epsilon": 1e-3,
    "target_update_period": 2500,
    "rescaling_epsilon": 1e-3,
}
ELSEWHERE_IN_THE_PAPER = {
    "period": 40,
    "frame_stack": 4,
    "n_step": 5,
    "eta": 0.9,
    "core": "lstm",
    "lstm_size": 512,
    "forget_bias": 1.0,
    "head_size": 512,
    "torso": "dqn",
    "stored_state": True,
    "rescale": True,
    "reward_transform": "none",
    "life_loss": "none",
    "samples_per_insert": None,
}
APE_X = {
    "epsilon_base": 0.4,
    "epsilon_alpha": 7.0,
    "max_gradient_norm": 40.0,
    "min_replay_size": 50_000 // 40,
}
MEME = {"lambda_": 0.95, "kappa": 0.01}
MUNCHAUSEN = {"tau": 0.03, "munchausen_l0": -1.0}
OFF = {"returns": "n_step", "trust_region": 0.0, "normalise_td": False, "munchausen_alpha": 0.0}


def _differences(config: Config) -> dict[str, Any]:
    default = dataclasses.asdict(Config())
    return {k: v for k, v in dataclasses.asdict(config).items() if v != default[k]}


def test_every_default_is_the_papers() -> None:
    expected = {**TABLE_2, **ELSEWHERE_IN_THE_PAPER, **APE_X}
    defaults = dataclasses.asdict(Config())
    del defaults["hidden_sizes"]  # for small tasks only
    assert defaults.pop("precision") == "float32"
    assert defaults.pop("evaluation_epsilon") == 0.0  # which the paper does not say
    assert defaults == expected | MEME | MUNCHAUSEN | OFF


def test_variants_differ_from_r2d2_as_the_paper_says() -> None:
    assert VARIANTS["r2d2"] == Config()
    assert _differences(VARIANTS["r2d2_plus"]) == {
        "torso": "resnet",
        "reward_transform": "asymmetric",
        "target_update_period": 400,
        "batch_size": 32,
    }
    assert _differences(VARIANTS["r2d2_feedforward"]) == {"lstm_size": 0, "burn_in": 0}


def test_on_dmlab_there_are_no_stacks_of_frames() -> None:
    """Section 2.3."""
    assert set(DMLAB_VARIANTS) == set(VARIANTS)
    for name, config in DMLAB_VARIANTS.items():
        assert config.frame_stack == 1
        assert dataclasses.replace(config, frame_stack=4) == VARIANTS[name]


@pytest.mark.parametrize(
    ("field", "value", "sentence"),
    [
        ("period", 81, r"period must be at most length \(80\)"),
        ("min_replay_size", 100_001, r"at most replay_size \(100000\), .* got 100001"),
        ("lstm_size", 30_000, "lstm_size and head_size must come to 268,435,456 weights"),
    ],
)
def test_impossible_values_are_refused(field: str, value: Any, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        Config(**{field: value})


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        (dict(returns="peng"), "returns must be one of n_step, watkins, retrace, got 'peng'"),
        (dict(lambda_=1.5), "lambda_ must be a number from 0 to 1, got 1.5"),
        (dict(tau=0.0), r"tau must be a number from 0.0001 to 10,000, got 0.0"),
        (dict(munchausen_l0=1.0), "munchausen_l0 must be a number from .* to 0, got 1.0"),
        (dict(munchausen_alpha=0.9, trust_region=2.0), "one must be 0, got 0.9 and 2.0"),
    ],
)
def test_returns_that_cannot_be_are_refused(changes: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        Config(**changes)


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
    assert make(small_config("r2d2", life_loss=life_loss)).resets_on_life_loss == bool(resets)
