"""The runs at a glance."""

import html
import os
import pathlib

import pytest

from analysis.report import run, summary
from run_folder import launches
from tests.analysis.report.made_up import Folder
from tests.analysis.report.pages import tables


def _load(folder: Folder) -> run.Run:
    (loaded,) = run.load([str(folder.path)])
    return loaded


@pytest.fixture
def folder(tmp_path: pathlib.Path) -> Folder:
    return Folder(tmp_path / "run")


def test_a_run_says_how_it_ended(folder: Folder) -> None:
    def state(seconds_ago: float = 0.0) -> str:
        progress = folder.path / "nodes" / "progress.json"
        if progress.exists():
            reported = progress.stat().st_mtime - seconds_ago
            os.utime(progress, (reported, reported))
        loaded = _load(folder)
        return summary.state(loaded.settings.folder, loaded.progress)

    assert state() == "no node has reported yet"
    folder.progress(state="running", reason="")
    assert state() == "running"
    assert state(600) == "broke off"
    assert state(-3_600) == "broke off"  # and then the clock was set back
    (folder.path / "nodes" / "crash.txt").write_text("Traceback")
    assert state() == "a node crashed"
    folder.progress(state="running", reason="5 actor steps were reached")  # and then one crashed
    assert state(600) == "ended: 5 actor steps were reached"


def test_counts_are_the_last_that_were_logged(folder: Folder) -> None:
    folder.act([0.0, 1.0] * 90)
    folder.learn("r2d2", rows=170, loss=1.0)
    folder.log(
        "evaluator",
        [dict(learner_steps=i, episode_return=r) for i, r in ((1, 0.5), (2, 0.75), (3, 0.25))],
    )
    ((_, *rows),) = tables(summary.section(run.lines([_load(folder)])).body)
    shown = dict(rows)
    assert shown["actor steps"] == "180,000"
    assert shown["updates"] == "340"
    assert shown["time, h:mm"] == "0:30"
    assert shown["training episodes"] == "180"
    assert shown["training return, last 100"] == "0.5"
    assert shown["evaluated return, newest"] == "0.25"
    assert shown["evaluated return, best"] == "0.75"


def test_the_summary_knows_the_evaluations_that_the_page_lists(folder: Folder) -> None:
    folder.act([0.0])
    folder.log("evaluator", [dict(learner_steps=10, episode_return=0.25)])
    folder.evaluate("r2d2", 10, {"catch": [0.5, 1.0]})
    folder.evaluate("r2d2", 5, {"catch": [1.0, 0.8]})
    folder.evaluate("r2d2", 20, {"catch": [-1.0]}, epsilon=0.3)  # not as it is evaluated
    ((_, *rows),) = tables(summary.section(run.lines([_load(folder)])).body)
    assert ["evaluated return, newest", "0.75"] in rows
    assert ["evaluated return, best", "0.9"] in rows


def test_a_suites_evaluation_is_its_median(tmp_path: pathlib.Path) -> None:
    folder = Folder(tmp_path / "run", "popart", "atari:pong,atari:boxing")
    folder.act([0.0])
    folder.evaluate("popart", 3, {"atari:pong": [14.6], "atari:boxing": [6.1]})  # 100 % and 50 %
    ((_, *rows),) = tables(summary.section(run.lines([_load(folder)])).body)
    assert ["evaluated return, newest", "75 % (median)"] in rows


def test_one_game_is_told_in_units_of_human_play_too(tmp_path: pathlib.Path) -> None:
    folder = Folder(tmp_path / "run", env="atari:boxing")  # a human's 12.1, random play's 0.1
    folder.act([6.1])
    ((_, *rows),) = tables(summary.section(run.lines([_load(folder)])).body)
    assert ["training return, last 100", "6.1 (50 %)"] in rows
    assert ["evaluated return, newest", "–"] in rows


def test_a_suite_is_told_as_its_median(tmp_path: pathlib.Path) -> None:
    folder = Folder(tmp_path / "run", "popart", "atari:pong,atari:boxing")
    folder.log("tasks", [dict(actor_steps=1, median_normalised=m) for m in (0.1, 0.25)])
    ((_, *rows),) = tables(summary.section(run.lines([_load(folder)])).body)
    assert ["training return, last 100", "25 % (median)"] in rows


def test_what_was_typed_is_shown_in_order(folder: Folder) -> None:
    assert "They were not recorded." in summary.commands([_load(folder)]).body
    launches.record(folder.path, ["--agent=r2d2", "--env=a<b"], actor_steps=0, walltime=0.0)
    launches.record(folder.path, ["--resume"], actor_steps=5_000, walltime=9.0)
    body = summary.commands([_load(folder)]).body
    first, second = body.index("--env=a&lt;b"), body.index("python -m launch.train --resume")
    assert first < body.index("from 5,000 actor steps") < second
    ran = launches.read(folder.path)[0]
    said = f"# recurrent-replay {ran.version}, commit {ran.commit}, on {ran.host}: {ran.processors}"
    assert body.count(html.escape(said if ran.commit else said.replace(", commit ", ""))) == 2
