"""Learning curves of few points, of every task, against steps and hours."""

import pathlib
from unittest import mock

import numpy as np
import pytest

from analysis.report import charts, page, returns, run
from analysis.report.charts import Chart
from analysis.report.figures import Trace
from environments import scores
from tests.analysis.report.made_up import LOG_SECONDS, STEPS, Folder


def _lines(*folders: Folder) -> list[run.Line]:
    return run.lines(run.load([str(folder.path) for folder in folders]))


def _drawn(lines: list[run.Line]) -> tuple[dict[str, list[Trace]], str]:
    """Every figure's traces, without drawing any, and what is around them on the page."""
    found: dict[str, list[Trace]] = {}

    def record(traces: list[Trace], title: str, *_: object, **__: object) -> list[Chart]:
        found[title] = [trace for trace in traces if len(trace.curve.x)]
        return [Chart(title, "", b"")] if found[title] else []

    with mock.patch.object(charts, "of_curves", record):
        return found, returns.section(lines, []).body


def test_a_run_is_drawn_against_steps_and_hours(tmp_path: pathlib.Path) -> None:
    folder = Folder(tmp_path / "run")
    folder.act([float(i) for i in range(1_000)])
    folder.log("evaluator", [dict(actor_steps=5, walltime=7_200, episode_return=3.5)])
    drawn, _ = _drawn(_lines(folder))
    acted, evaluated = drawn["catch, by steps"]
    assert (acted.band, acted.style, evaluated.style) == (True, "-", "o--")
    assert len(acted.curve.x) == 100
    np.testing.assert_allclose(acted.curve.x, STEPS * (acted.curve.mean + 1))
    assert (evaluated.curve.x.tolist(), evaluated.curve.mean.tolist()) == ([5], [3.5])
    acted, evaluated = drawn["catch, by hours"]
    np.testing.assert_allclose(acted.curve.x, LOG_SECONDS * (acted.curve.mean + 1) / 3_600)
    assert evaluated.curve.x.tolist() == [2.0]


def test_a_run_without_episodes_file_is_drawn_from_the_actors_log(tmp_path: pathlib.Path) -> None:
    folder = Folder(tmp_path / "run")
    folder.act([float(i) for i in range(100)])
    (folder.path / "logs" / "episodes.csv").unlink()
    (acted,) = _drawn(_lines(folder))[0]["catch, by steps"]
    assert acted.curve.mean.mean() == pytest.approx(49.5)


def test_runs_share_the_figures_of_the_tasks_that_they_share(tmp_path: pathlib.Path) -> None:
    one, two = Folder(tmp_path / "one"), Folder(tmp_path / "two", "impala", "catch,memory:recall")
    for folder in (one, two):
        folder.act([1.0] * 20)
    drawn, _ = _drawn(_lines(one, two))
    assert [trace.colour for trace in drawn["catch, by steps"]] == [0, 1]
    assert [trace.colour for trace in drawn["memory:recall, by steps"]] == [1]


def test_an_agent_that_does_not_act_has_no_training_curve(tmp_path: pathlib.Path) -> None:
    folder = Folder(tmp_path / "run", "r2d2,impala", act_with="impala")
    folder.act([1.0] * 20)
    drawn, _ = _drawn(_lines(folder))
    assert [trace.colour for trace in drawn["catch, by steps"]] == [1]


def test_a_whole_suite_is_drawn_together_and_game_by_game(tmp_path: pathlib.Path) -> None:
    folder = Folder(tmp_path / "run", "popart", "atari57")
    folder.act([1.0] * 20, actors=57)
    folder.log("tasks", [dict(actor_steps=i, walltime=i, median_normalised=i / 9) for i in (1, 2)])
    drawn, _ = _drawn(_lines(folder))
    together = [f"Median human-normalised return, by {axis}" for axis in ("steps", "hours")]
    # Each game by steps alone: the page would be twice as long.
    assert list(drawn) == [*together, *(f"{game}, by steps" for game in scores.ATARI57)]
    assert drawn[together[0]][0].curve.mean.tolist() == pytest.approx([1 / 9, 2 / 9])
    assert all(len(traces) == 1 for traces in drawn.values())


def test_many_tasks_without_human_scores_are_drawn_by_hours_too(tmp_path: pathlib.Path) -> None:
    names = [f"gym:CartPole-v{i}" for i in (0, 1)] + ["catch", "catch:large_rewards"]
    with mock.patch.object(page, "MANY", 3):
        folder = Folder(tmp_path / "run", "impala", ",".join(names))
        folder.act([1.0] * 20)
        drawn, body = _drawn(_lines(folder))
    every = [f"{name}, by {axis}" for name in names for axis in ("steps", "hours")]
    assert [title for title, traces in drawn.items() if traces] == every
    assert "<details><summary>All 4 tasks</summary>" in body


def test_a_hundred_thousand_episodes_weigh_no_more_than_a_thousand(tmp_path: pathlib.Path) -> None:
    rng = np.random.default_rng(0)
    sizes = []
    for count in (1_000, 120_000):
        folder = Folder(tmp_path / str(count))
        rows = enumerate(rng.normal(size=count).tolist())
        text = "".join(f"{i},{i / 2},{i % 32},catch,{value},9\n" for i, value in rows)
        header = "actor_steps,walltime,actor,task,episode_return,episode_length\n"
        (folder.path / "logs" / "episodes.csv").write_text(header + text)
        section = returns.section(_lines(folder), [])
        assert len(section.charts) == 2
        sizes.append(len(section.body))
    assert sizes[1] < 1.1 * sizes[0] < 30_000


def test_a_young_run_says_so(tmp_path: pathlib.Path) -> None:
    section = returns.section(_lines(Folder(tmp_path / "run")), [])
    assert "No episode has ended yet." in section.body
    assert not section.charts
