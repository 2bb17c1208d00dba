"""The study of R2D2: its arms are what their names say, a quick run of it ends, its page agrees."""

import pathlib

import pytest

from environments.memory import DELAY
from r2d2.config import Config
from studies import reproduction
from studies.plot_performance import drawn_from
from studies.reproduction_arms import FEEDFORWARD, STUDIES, TASKS, make_agent, runs
from studies.reproduction_results import POINTS, Run, fingerprint, read

QUICK = "--study feedforward --seeds=1 --steps=900"


def _config(task: str, arm: str) -> Config:
    config = make_agent(Run(task, arm, seed=0)).config
    assert isinstance(config, Config)
    return config


@pytest.mark.parametrize("task", TASKS)
def test_no_two_arms_of_a_task_are_the_same(task: str) -> None:
    configs = [_config(task, arm) for arm in TASKS[task].arms]
    assert len(set(configs)) == len(configs)


def test_arms_on_memory_tasks_are_what_they_are_called() -> None:
    for task in ("memory:recall", "memory:cartpole"):
        for arm in TASKS[task].arms:
            config = _config(task, arm)
            _, _, burn_in = arm.partition(", burn-in ")
            assert config.burn_in == int(burn_in or 0)
            assert config.stored_state != arm.startswith("zero")
            assert config.lstm_size == (0 if arm == FEEDFORWARD else 64)


def test_items_of_recall_hold_the_cue_or_the_query() -> None:
    """Those with a burn-in of 4 hold both, but learn from one."""
    lengths = {_config("memory:recall", arm).length for arm in TASKS["memory:recall"].arms}
    assert lengths == {(DELAY + 2) // 2}


def test_arms_on_rewards_are_what_they_are_called() -> None:
    found = {
        (arm, config.rescale, config.reward_transform)
        for task in STUDIES["rewards"].arms
        for arm in TASKS[task].arms
        for config in [_config(task, arm)]
    }
    assert found == {
        ("rescaled", True, "none"),
        ("clipped", False, "clip"),
    }


def test_every_comparison_is_between_arms_of_its_study() -> None:
    for study in STUDIES.values():
        for task, better, worse in study.comparisons:
            assert {better, worse} <= set(study.arms[task])


def test_arms_that_two_studies_share_run_once() -> None:
    found = runs(STUDIES, seeds=2)
    assert len(set(found)) == len(found) == 2 * sum(len(task.arms) for task in TASKS.values())


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
        assert result.updates > 0
    image = reproduction.image(tmp_path, "feedforward")
    assert drawn_from(image) == fingerprint(results, STUDIES["feedforward"].arms)
    assert "| memory:recall | feed-forward | " in capsys.readouterr().out
    reproduction.main(flags)
    assert data.read_text() == text


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--steps=5"], "--steps=5 makes no runs of the study"),
        (["--seeds=0"], "--seeds must be at least 1, got 0"),
        (["--study", "reward"], "invalid choice: 'reward'"),
    ],
)
def test_flags_that_cannot_be_are_refused(
    flags: list[str], message: str, capsys: pytest.CaptureFixture
) -> None:
    with pytest.raises(SystemExit, match="2"):
        reproduction.main(flags)
    assert message in capsys.readouterr().err
