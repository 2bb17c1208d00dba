"""The study of R2D2: its arms are what their names say, its task of rewards, a quick run."""

import pathlib

import numpy as np
import pytest
from PIL import Image

from analysis.playing import intervals
from benchmarks import reproduction, ripening, study
from benchmarks.figures import fingerprint
from benchmarks.reproduction import (
    FEEDFORWARD,
    POINTS,
    STUDIES,
    TASKS,
    Result,
    make_agent,
    mean,
    runs,
    shown,
)
from benchmarks.ripening import STEPS, WORTH
from benchmarks.study import Run
from environments import suites
from environments.small_tasks import DELAY
from r2d2.config import Config

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
    for task in reproduction.REWARDS:
        found = {arm: _config(task, arm) for arm in TASKS[task].arms}
        transforms = {arm: (own.rescale, own.reward_transform) for arm, own in found.items()}
        assert transforms == {"rescaled": (True, "none"), "clipped": (False, "clip")}


def test_every_comparison_is_between_arms_of_its_task() -> None:
    for comparisons in STUDIES.values():
        for task, better, worse in comparisons:
            assert {better, worse} <= set(TASKS[task].arms)


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
    def of(results: dict[Run, Result]) -> str:
        return fingerprint(shown(results, ARMS))

    result = Result(1_000, 50, 7.5, 0.0, (np.nan, 0.0))
    results = {Run("one", arm, seed): result for arm in "ab" for seed in range(3)}
    assert of(dict(reversed(results.items()))) == of(results)
    elsewhere = {**results, Run("three", "a", 0): result, Run("one", "c", 0): result}
    assert of(elsewhere) == of(results)
    assert of({**results, Run("one", "a", 0): result._replace(final_return=5.0)}) != of(results)


@pytest.mark.slow
def test_a_quick_run_is_trained_drawn_and_not_repeated(
    tmp_path: pathlib.Path, capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The page's quick command, but for its two runs on cart-pole."""
    on_recall = [run for run in runs(["feedforward"], [0]) if run.task == "memory:recall"]
    monkeypatch.setattr(reproduction, "runs", lambda *_: on_recall)
    flags = ["--study", "feedforward", f"--quick={tmp_path}"]
    data = tmp_path / "data/reproduction.csv"
    reproduction.main(flags)
    text, results = data.read_text(), study.read(data, Run, Result)
    assert list(results) == on_recall
    for result in results.values():
        assert 900 <= result.steps < 900 + reproduction.NUM_ENVIRONMENTS
        assert len(result.curve) == POINTS
        assert np.isnan(result.curve[0])  # by when no episode has ended
        assert result.updates > 0
    with Image.open(reproduction.image(tmp_path, "feedforward")) as image:
        drawn_of = image.info["Description"]
    assert drawn_of == fingerprint(shown(results, reproduction.arms("feedforward")))
    assert "| memory:recall | feed-forward | " in capsys.readouterr().out
    monkeypatch.setattr(reproduction, "train", None)
    reproduction.main(flags)
    assert data.read_text() == text


def _play(actions: list[int]) -> list[float]:
    """The rewards of an episode that these actions end."""
    env = suites.make(ripening.NAME, 1, seed=0)
    env.reset()
    rewards = []
    for i, action in enumerate(actions):
        _, reward, terminated, truncated, _ = env.step(np.array([action]))
        rewards.append(float(reward[0]))
        assert terminated[0] == (i == STEPS - 1)
        assert not truncated[0]
    return rewards


def _best_actions(worth: tuple[float, ...], discount: float) -> list[int]:
    """From the unripe fruit on, by dynamic programming over the stages and the steps left."""
    value, choices = np.zeros(len(worth)), []
    for _ in range(STEPS):
        waiting = discount * value[np.minimum(np.arange(len(worth)) + 1, len(worth) - 1)]
        picking = np.array(worth) + discount * value[0]
        choices.append((picking > waiting).astype(int))
        value = np.maximum(waiting, picking)
    stage, actions = 0, []
    for choice in reversed(choices):
        actions.append(int(choice[stage]))
        stage = 0 if actions[-1] else min(stage + 1, len(worth) - 1)
    return actions


@pytest.mark.parametrize("discount", [0.99, 1.0])
@pytest.mark.parametrize(
    ("worth", "best", "found"),
    [
        (WORTH, [0, 0, 0, 1] * 4, 256.0),
        (tuple(np.clip(WORTH, -1, 1)), [1] * STEPS, 16.0),
    ],
    ids=["waits for ripe fruit", "picks at every step where rewards are clipped"],
)
def test_the_best_play(
    worth: tuple[float, ...], best: list[int], found: float, discount: float
) -> None:
    actions = _best_actions(worth, discount)
    assert actions == best
    assert sum(_play(actions)) == found


def test_fruit_ripens_no_further_than_ripe_and_the_next_is_unripe() -> None:
    assert _play([0] * (STEPS - 2) + [1, 1])[-2:] == [WORTH[-1], WORTH[0]]


def test_the_stage_is_seen() -> None:
    env = suites.make(ripening.NAME, 2, seed=0)
    first, _ = env.reset()
    second, *_ = env.step(np.array([0, 1]))
    np.testing.assert_array_equal(first.argmax(axis=1), [0, 0])
    np.testing.assert_array_equal(second.argmax(axis=1), [1, 0])
    np.testing.assert_array_equal(second.sum(axis=1), [1, 1])
