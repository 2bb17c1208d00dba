"""The study of R2D2: its arms are what their names say, runs are kept, a quick one ends."""

import pathlib

import numpy as np
import pytest

from analysis.playing import intervals
from environments.small_tasks import DELAY
from r2d2.config import Config
from studies import reproduction
from studies.plot_performance import drawn_from
from studies.reproduction_arms import FEEDFORWARD, STUDIES, TASKS, make_agent, runs
from studies.reproduction_results import POINTS, Result, Run, append, fingerprint, mean, read

QUICK = "--study feedforward --seeds=1 --steps=900"
ARMS = {"one": ["a", "b"], "two": ["a"]}


def _config(task: str, arm: str) -> Config:
    config = make_agent(Run(task, arm, seed=0)).config
    assert isinstance(config, Config)
    return config


def test_arms_on_memory_tasks_are_what_they_are_called() -> None:
    for task in ("memory:recall", "memory:cartpole"):
        for arm in TASKS[task].arms:
            config = _config(task, arm)
            _, _, burn_in = arm.partition(", burn-in ")
            assert config.burn_in == int(burn_in or 0)
            assert config.stored_state != arm.startswith("zero")
            assert config.lstm_size == (0 if arm == FEEDFORWARD else 64)
            if task == "memory:recall":  # an item holds the cue or the query, or learns from one
                assert config.length == (DELAY + 2) // 2


def test_arms_on_rewards_are_what_they_are_called() -> None:
    for task in STUDIES["rewards"].arms:
        found = {arm: _config(task, arm) for arm in TASKS[task].arms}
        transforms = {arm: (own.rescale, own.reward_transform) for arm, own in found.items()}
        assert transforms == {"rescaled": (True, "none"), "clipped": (False, "clip")}


def test_every_comparison_is_between_arms_of_its_study() -> None:
    for study in STUDIES.values():
        for task, better, worse in study.comparisons:
            assert {better, worse} <= set(study.arms[task])


def _result(final: float = 0.0) -> Result:
    return Result(1_000, 50, 7.5, final, (np.nan, *np.linspace(0.0, final, POINTS - 1).round(3)))


def test_what_was_appended_is_read_again(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "data" / "runs.csv"
    assert read(path) == {}
    known = {Run("memory:recall", "zero, burn-in 2", 3): _result(0.25), Run("b", "c", 0): _result()}
    for run, result in known.items():
        append(path, run, result)
    assert str(read(path)) == str(known)  # a window without an episode equals no other
    assert len(path.read_text().splitlines()) == 3


def test_the_interval_of_five_values_is_as_short_as_is_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert str(mean([0.5])) == "0.50"  # a single seed says nothing of others
    monkeypatch.setattr(intervals, "RESAMPLES", 500)  # as good, and faster
    samples = np.random.default_rng(0).normal(7.0, 2.0, size=(1_000, 5))
    bounds = [mean(sample.tolist()).interval for sample in samples]
    covered = np.mean([low <= 7.0 <= high for low, high in bounds])
    assert 0.79 < covered < 0.87  # its standard error is 0.012


def test_a_fingerprint_is_of_the_runs_that_are_shown() -> None:
    results = {Run("one", arm, seed): _result(seed) for arm in "ab" for seed in range(3)}
    reordered = dict(reversed(results.items()))
    assert fingerprint(reordered, ARMS) == fingerprint(results, ARMS)
    elsewhere = {**results, Run("three", "a", 0): _result(), Run("one", "c", 0): _result()}
    assert fingerprint(elsewhere, ARMS) == fingerprint(results, ARMS)
    changed = {**results, Run("one", "a", 0): _result(5.0)}
    assert fingerprint(changed, ARMS) != fingerprint(results, ARMS)


@pytest.mark.slow
def test_a_quick_run_is_trained_drawn_and_not_repeated(
    tmp_path: pathlib.Path, capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The page's quick command, but for its two runs on cart-pole."""
    on_recall = [run for run in runs(["feedforward"], seeds=1) if run.task == "memory:recall"]
    monkeypatch.setattr(reproduction, "runs", lambda *_: on_recall)
    flags, data = [*QUICK.split(), f"--out={tmp_path}"], tmp_path / "data/reproduction.csv"
    reproduction.main(flags)
    text, results = data.read_text(), read(data)
    assert list(results) == on_recall
    for result in results.values():
        assert 900 <= result.steps < 900 + reproduction.NUM_ENVIRONMENTS
        assert len(result.curve) == POINTS
        assert np.isnan(result.curve[0])  # by when no episode has ended
        assert result.updates > 0
    image = reproduction.image(tmp_path, "feedforward")
    assert drawn_from(image) == fingerprint(results, STUDIES["feedforward"].arms)
    assert "| memory:recall | feed-forward | " in capsys.readouterr().out
    monkeypatch.setattr(reproduction, "train", None)
    reproduction.main(flags)
    assert data.read_text() == text


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--steps=5"], "--steps=5 makes no runs of the study"),
        (["--seeds=0"], "--seeds must be at least 1, got 0"),
    ],
)
def test_flags_that_cannot_be_are_refused(
    flags: list[str], message: str, capsys: pytest.CaptureFixture
) -> None:
    with pytest.raises(SystemExit, match="2"):
        reproduction.parse(flags)
    assert message in capsys.readouterr().err
