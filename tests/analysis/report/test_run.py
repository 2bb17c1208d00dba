"""Run folders as a report reads them."""

import pathlib

import numpy as np
import pytest

from analysis.report import run
from run_folder.settings import SettingsError
from tests.analysis.report.made_up import Folder


def test_runs_have_their_folders_names(tmp_path: pathlib.Path) -> None:
    def names(*folders: str) -> list[str]:
        paths = [str(tmp_path / folder) for folder in folders]
        return [each.name for each in run.load(paths)]

    for folder in ("pong", "seed1/pong", "seed2/pong"):
        Folder(tmp_path / folder)
    assert names("pong") == ["pong"]
    assert names("seed1/pong", "seed2/pong") == ["seed1/pong", "seed2/pong"]
    (tmp_path / "latest").symlink_to(tmp_path / "pong")
    with pytest.raises(SettingsError, match=f"--run_dir names {tmp_path}/latest twice"):
        names("latest", "pong")


def test_lines_are_named_by_what_tells_them_apart(tmp_path: pathlib.Path) -> None:
    one = Folder(tmp_path / "one")
    two = Folder(tmp_path / "two", "r2d2,impala")
    runs = run.load([str(one.path), str(two.path)])
    assert [line.label for line in run.lines(runs)] == ["one, r2d2", "two, r2d2", "two, impala"]
    assert [line.colour for line in run.lines(runs)] == [0, 1, 2]
    assert [line.label for line in run.lines(runs[:1])] == ["one"]
    assert [line.label for line in run.lines(runs[1:])] == ["r2d2", "impala"]


def test_episodes_are_of_the_agent_that_acted(tmp_path: pathlib.Path) -> None:
    folder = Folder(tmp_path / "run", "r2d2,popart", "catch,catch:large_rewards", num_actors=4)
    folder.act([float(i) for i in range(40)], actors=4)
    followers = {c.agent: c.actors for c in folder.settings.crews()}
    assert {name: set(actors) for name, actors in followers.items()} == {
        "r2d2": {0, 1},
        "popart": {2, 3},
    }
    lines = run.lines(run.load([str(folder.path)]))
    for line in lines:
        log = line.episodes("catch")
        assert set(log["actor"]) == set(followers[line.agent])
        assert set(log.texts["task"]) == {"catch"}
        assert np.isin(log["episode_return"] % 4, followers[line.agent]).all()
    assert sum(len(line.episodes("catch")) for line in lines) == 40
    assert sum(len(line.episodes("catch:large_rewards")) for line in lines) == 40


def test_evaluations_are_read_from_each_agents_log(tmp_path: pathlib.Path) -> None:
    folder = Folder(tmp_path / "run", "r2d2,popart")
    for name, value in (("evaluator-r2d2", 1.0), ("evaluator-popart", 2.0)):
        folder.log(name, [dict(learner_steps=1, episode_return=value)])
    lines = run.lines(run.load([str(folder.path)]))
    found = {line.agent: line.evaluator.last(line.evaluated("catch")) for line in lines}
    assert found == {"r2d2": 1.0, "popart": 2.0}


def test_more_agents_than_colours_are_refused(tmp_path: pathlib.Path) -> None:
    folders = [Folder(tmp_path / name, "r2d2,impala,popart") for name in "abcd"]
    with pytest.raises(SettingsError, match="runs of 12 agents; more than 10 cannot be told apart"):
        run.load([str(folder.path) for folder in folders])


def test_the_last_episodes_count(tmp_path: pathlib.Path) -> None:
    folder = Folder(tmp_path / "run")
    assert np.isnan(run.recent(run.load([str(folder.path)])[0].episodes))
    folder.act([100.0, 1.0, 3.0])
    assert run.recent(run.load([str(folder.path)])[0].episodes, count=2) == 2.0
