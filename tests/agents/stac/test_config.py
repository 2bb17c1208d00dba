"""STAC's Config: the paper's table, and the sentences that refuse impossible values."""

import contextlib
import re
from typing import Any

import pytest

from agents.impala.config import ATARI as IMPALA
from agents.stac.config import ATARI, DMLAB, STACX_ATARI
from run_folder import resuming, settings
from run_folder.settings import SettingsError


def test_the_defaults_are_table_3() -> None:
    expected = dict(
        learning_rate=6e-4,
        final_learning_rate=0.0,
        rmsprop_decay=0.99,
        rmsprop_epsilon=0.1,
        max_gradient_norm=None,
        batch_size=32,
        length=20,
        annealing_frames=200_000_000,
        discount=0.995,
        lambda_=1.0,
        alpha=1.0,
        entropy_cost=0.01,
        baseline_cost=2 * 0.25,  # of half a square
        policy_gradient_cost=1.0,
        rho_bar=1.0,
        c_bar=1.0,
        kl_cost=1.0,
        meta_learning_rate=1e-3,
        meta_beta1=0.9,
        meta_beta2=0.999,
        meta_epsilon=1e-4,
        meta_initial=4.6,
        torso="resnet",
        lstm_size=0,
        frame_stack=4,
        num_heads=1,
        self_tuned=("gamma", "lambda", "g_v", "g_p", "g_e", "alpha"),
    )
    for name, value in expected.items():
        assert getattr(ATARI, name) == value, name
    assert ATARI.annealing_updates == pytest.approx(78_125)
    assert STACX_ATARI.num_heads == 3
    assert DMLAB.lstm_size == 256


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("self_tuned", "gama", "self_tuned must be none, or several of gamma, lambda, .* once"),
        ("self_tuned", "gamma,gamma", r"each once, got \('gamma', 'gamma'\)"),
        ("num_heads", "0", "stac.num_heads must be a whole number from 1 to 64, got 0"),
        ("entropy_cost", "0", "entropy_cost must be more than 0 where g_e, .* is self-tuned"),
        ("baseline_cost", "0", "baseline_cost must be more than 0 where g_v"),
        ("policy_gradient_cost", "0", "policy_gradient_cost must be more than 0 where g_p"),
        ("correction", "epsilon", "correction must be vtrace, which leaks here, got 'epsilon'"),
        ("pixel_control_cost", "0.1", "pixel_control_cost must be 0: .* got 0.1"),
        ("meta_beta1", "1", "meta_beta1 must be a number from 0 to 0.999999, got 1.0"),
        ("separate_alphas", "maybe", "separate_alphas must be of type bool, got 'maybe'"),
    ],
)
def test_what_cannot_be_is_refused_in_a_sentence(field: str, value: str, message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        _resolve({field: value})


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (dict(self_tuned="lambda,gamma"), "self_tuned must stay ('gamma', 'lambda'), of which η"),
        (dict(separate_alphas="true"), "--stac.separate_alphas must stay False, of which η is"),
        (dict(kl_cost="2"), ""),
    ],
)
def test_what_eta_stands_for_stays_when_a_run_goes_on(changes: dict[str, str], said: str) -> None:
    run = _resolve({"self_tuned": "gamma,lambda"})
    with pytest.raises(SettingsError, match=re.escape(said)) if said else contextlib.nullcontext():
        resuming.changed(run, {}, {"stac": changes})


@pytest.mark.parametrize("agent", ["stac", "stacx"])
def test_a_suite_is_refused(agent: str) -> None:
    message = f"--env must be one task for --agent={agent}, got the 57 of 'atari57'.*several would"
    with pytest.raises(SettingsError, match=message):
        _resolve({}, agent=agent, env="atari57")


def test_the_local_outer_loss_is_impalas() -> None:
    """For runs side by side: what both Configs have is alike."""
    for env in ("catch", "atari:pong"):
        run = _resolve({}, agent="stac,impala", env=env)
        mine, theirs = run.configs["stac"], run.configs["impala"]
        for name in vars(IMPALA):
            assert getattr(mine, name) == getattr(theirs, name), (env, name)


def _resolve(overrides: dict[str, str], agent: str = "stac", env: str = "catch") -> Any:
    given = dict(agent=agent, env=env, run_dir="runs/none", preset="local")
    return settings.resolve(given, {agent: overrides} if overrides else {})
