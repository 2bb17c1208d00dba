"""Continuous control, task after task: their table, and a film and a picture of each."""

import json
import pathlib

import av
import numpy as np
import pytest

from agents.environment_loop import Episode
from analysis.playing.files import File, Played
from benchmarks import control as study
from benchmarks import control_gallery
from environments.control import environment as control
from environments.control import tasks as control_tasks
from tests.environments.control import renderers

TASKS = ["control:cartpole/swingup", "control:walker/walk"]


@pytest.fixture
def _as_if_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(control, "check", lambda kind, task: None)


@pytest.mark.usefixtures("_as_if_installed")
def test_a_list_has_names_and_groups() -> None:
    assert study.names("cartpole/swingup,control:walker/walk") == TASKS
    assert len(study.names("benchmarking")) == 28
    assert len(study.names("benchmarking-pixels,rwrl")) == 28 + 16
    with pytest.raises(ValueError, match="did you mean control:walker/walk"):
        study.names("cartpole/swingup,walker/wakl")


def test_what_was_cut_short_goes_on(tmp_path: pathlib.Path) -> None:
    how = ["--seed=3", "--max_actor_steps=1000"]
    begun, evaluated = study.commands(TASKS[0], "stacx", tmp_path, how)
    assert begun[1:3] == ["--agent=stacx", "--env=control:cartpole/swingup"]
    assert begun[-2:] == how
    assert evaluated[0] == "launch.evaluate"
    (tmp_path / "config.json").touch()
    resumed = study.commands(TASKS[0], "stacx", tmp_path, how)[0]
    assert resumed[1:] == [f"--run_dir={tmp_path}", "--resume"]

    state = dict(limits=dict(actor_steps=1_000, learner_steps=None))
    (tmp_path / "nodes").mkdir()
    for ended, steps, goes_on in (
        ("running", 1_008, True),
        ("finished", 1_008, False),
        ("finished", 900, True),
    ):
        counts = dict(actor_steps=steps, learner_steps=20)
        text = json.dumps(state | dict(state=ended, counts=counts))
        (tmp_path / "nodes" / "progress.json").write_text(text)
        assert (len(study.commands(TASKS[0], "stacx", tmp_path, how)) == 2) == goes_on


def test_the_table_has_a_row_for_each_task_that_was_played(tmp_path: pathlib.Path) -> None:
    played = Played("impala", 7, 4000, 60.0, None, None, 0)
    for name, returns in zip(TASKS, ((100.0, 300.0), (400.0, 400.0)), strict=True):
        episodes = [Episode(0, value, 1000) for value in returns]
        File(study.folder_of(tmp_path, name), played).append(name, episodes)
    assert study.table(tmp_path, [*TASKS, "control:fish/swim"]).splitlines()[2:] == [
        "| control:cartpole/swingup | 4,000 | 200.0 | 100.0 |",
        "| control:walker/walk | 4,000 | 400.0 | 0.0 |",
        "| mean of 2 |  | 300.0 |  |",
    ]


def test_all_that_the_benchmark_has() -> None:
    names = list(control_gallery.names())
    assert names[:28] == [f"control:{task}" for task in control_tasks.BENCHMARKING]
    assert names[28:] in ([], [f"rwrl:{task}" for task in control_tasks.RWRL])


def test_an_episode_is_played_to_its_end_and_filmed(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    renderers.choose(monkeypatch)
    monkeypatch.setattr(control_gallery, "EVERY", 200)
    film = tmp_path / "film.mp4"
    steps, picture = control_gallery.play("control:cartpole/swingup", film)
    assert steps == 1000
    assert (picture.dtype, picture.ndim) == (np.uint8, 3)
    with av.open(str(film)) as container:
        assert sum(1 for _ in container.decode(video=0)) == 5


def test_a_picture_of_each(tmp_path: pathlib.Path) -> None:
    picture = np.random.default_rng(0).integers(0, 256, (48, 64, 3), np.uint8)
    control_gallery.draw({f"control:a/{i}": picture for i in range(9)}, tmp_path / "all.png")
    assert (tmp_path / "all.png").stat().st_size > 5_000
