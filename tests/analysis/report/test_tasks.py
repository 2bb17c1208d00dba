"""What every task returned, by the best measurement that all lines have."""

import dataclasses
import pathlib
from typing import Any
from unittest import mock

import pytest

from agents.environment_loop import Episode
from analysis.playing import files
from analysis.report import page, run, tasks
from environments import scores, suites
from tests.analysis.report.made_up import Folder
from tests.analysis.report.pages import tables

PONG = scores.SCORES["atari:pong"]
PLAYED = files.Played("r2d2", 20, 10_000, 100.0, 0.0, None, 0)


def _lines(*folders: Folder) -> list[run.Line]:
    return run.lines(run.load([str(folder.path) for folder in folders]))


def _evaluate(folder: Folder, task: str, *returns: float, **changes: Any) -> None:
    file = files.File(folder.path, dataclasses.replace(PLAYED, **changes))
    file.append(task, [Episode(0, value, 10) for value in returns])


@pytest.fixture
def pong(tmp_path: pathlib.Path) -> Folder:
    folder = Folder(tmp_path / "pong", env="atari:pong")
    folder.act([-21.0] * 50 + [float(i % 2) for i in range(100)])
    return folder


def test_training_is_what_is_always_there(pong: Folder) -> None:
    source, found = tasks.returns(_lines(pong))
    assert source == "the last 100 training episodes"
    assert found == [{"atari:pong": 0.5}]


def test_the_runs_own_evaluation_is_better(pong: Folder) -> None:
    pong.log("evaluator", [dict(learner_steps=i, episode_return=r) for i, r in ((1, -5), (2, 7))])
    source, found = tasks.returns(_lines(pong))
    assert source == "the run's own newest evaluation"
    assert found == [{"atari:pong": 7.0}]


def test_the_newest_evaluation_of_the_agent_as_it_is_evaluated_is_best(pong: Folder) -> None:
    _evaluate(pong, "atari:pong", 18.0, 20.0, learner_steps=30)
    _evaluate(pong, "atari:pong", 0.0, learner_steps=20)
    _evaluate(pong, "atari:pong", 1.0, learner_steps=40, epsilon=0.5)
    _evaluate(pong, "atari:pong", 2.0, learner_steps=40, memory_steps=1)
    source, found = tasks.returns(_lines(pong))
    assert source == "the newest launch.evaluate"
    assert found == [{"atari:pong": 19.0}]


def test_all_lines_are_compared_by_the_same(pong: Folder, tmp_path: pathlib.Path) -> None:
    _evaluate(pong, "atari:pong", 19.0)
    other = Folder(tmp_path / "other", env="atari:pong")
    other.act([3.0])
    source, found = tasks.returns(_lines(pong, other))
    assert source == "the last 100 training episodes"
    assert found == [{"atari:pong": 0.5}, {"atari:pong": 3.0}]


def test_a_level_is_evaluated_on_its_twin(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(suites, "check", lambda name: None)  # where the engine is
    twin, level = "dmlab:rooms_exploit_deferred_effects_test", "dmlab:explore_goal_locations_small"
    folder = Folder(
        tmp_path / "lab", "popart", f"dmlab:rooms_exploit_deferred_effects_train,{level}"
    )
    folder.log("evaluator", [{"learner_steps": 1, f"return/{twin}": 5, f"return/{level}": 9}])
    assert tasks.returns(_lines(folder))[1] == [{twin: 5.0, level: 9.0}]


def test_the_table_has_returns_and_what_they_are_to_a_human(pong: Folder) -> None:
    _evaluate(pong, "atari:pong", (PONG["human"] + PONG["random"]) / 2)
    section = tasks.section(_lines(pong), [("pong", 0)])
    assert "<td>50 %</td>" in section.body
    assert [chart.name for chart in section.charts] == ["human-normalised-return"]


def test_what_no_human_played_has_its_own_figure(tmp_path: pathlib.Path) -> None:
    both = Folder(tmp_path / "both", "impala", "catch,atari:pong")
    both.act([0.5])
    section = tasks.section(_lines(both), [("both", 0)])
    assert [c.name for c in section.charts] == ["human-normalised-return", "return"]
    alone = Folder(tmp_path / "alone")
    alone.act([0.5])
    section = tasks.section(_lines(alone), [("alone", 0)])
    assert [chart.name for chart in section.charts] == ["return"]
    assert "normalised" not in section.body


def test_before_the_first_episode_there_is_nothing_to_draw(tmp_path: pathlib.Path) -> None:
    section = tasks.section(_lines(Folder(tmp_path / "young")), [("young", 0)])
    assert "No episode has ended yet." in section.body
    assert not section.charts


def test_games_are_sorted_by_the_first_lines_score_and_folded_where_many(
    tmp_path: pathlib.Path,
) -> None:
    folder = Folder(tmp_path / "run", "popart", "catch,atari:pong,atari:boxing,atari:breakout")
    folder.act([-12.0])  # of pong; boxing -11, breakout -10: all the worse for a human
    ((_, *rows),) = tables(tasks.section(_lines(folder), [("run", 0)]).body)
    assert [row[0] for row in rows] == ["atari:pong", "atari:breakout", "atari:boxing", "catch"]
    assert "<details>" not in tasks.section(_lines(folder), [("run", 0)]).body
    with mock.patch.object(page, "MANY", 3):
        assert "All 4 tasks" in tasks.section(_lines(folder), [("run", 0)]).body
