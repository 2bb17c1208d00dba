"""Distributions of lags, a measurement's table on a terminal of 80 columns, and its figures."""

import dataclasses
import io
import pathlib
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle, StepPatch
from rich.console import Console

from analysis import diagnosis
from analysis.diagnosis import Discrepancy, Lags, Memory
from analysis.playing import evaluation
from analysis.saved_replay import Sampled
from replay.layout import Layout
from tests.run_folder import saved_runs

_TASKS = ("memory:recall", "dmlab:rooms_select_nonmatching_object")
_ROWS: dict[str, Sequence[Any]] = {
    "discrepancy": [
        Discrepancy(task, 123_456, "stored", 40, 0.00012345678, -123.456, -0.0001, 9e9, 10**6)
        for task in _TASKS
        for _ in range(2)
    ],
    "memory": [
        Memory(task, 10_000, -1234.5678, -9999.99, 0.00012345, 0.77777, 1e-9, 500)
        for task in _TASKS
    ],
}


def test_weighted_quantiles_are_those_of_repeated_values() -> None:
    rng = np.random.default_rng(0)
    values, weights = rng.integers(20, size=50), rng.integers(1, 6, size=50)
    repeated = np.repeat(values, weights)
    for quantile in (0.0, 0.1, 0.5, 0.9, 1.0):
        expected = np.quantile(repeated, quantile, method="inverted_cdf")
        assert diagnosis.weighted_quantile(values, weights, quantile) == expected


def test_what_is_stored_counts_alike_however_often_it_is_sampled() -> None:
    """Three of four samples are of one item, which is drawn three times as often."""
    replay = Sampled(np.array([10, 10, 10, 50]), np.array([0.75, 0.75, 0.75, 0.25]))
    logged, sampled, stored = Lags(np.array([1.0, 2.0]), np.array([4.0, 8.0]), replay).rows()
    assert (logged.of, logged.mean, logged.count) == ("logged", 6.0, 2)
    assert (sampled.of, sampled.mean, sampled.p90) == ("sampled", 20.0, 50.0)
    assert stored.of == "stored"
    assert stored.mean == pytest.approx(30.0)


def test_the_log_gives_the_mean_lag_over_time(tmp_path: pathlib.Path) -> None:
    run = saved_runs.save(tmp_path / "run")
    run.folder.logs.mkdir()
    log = "learner_steps,parameter_lag,loss\n3,nan,1\n10,2.5,1\n20,7.5,nan\n"
    run.folder.log("learner-r2d2").write_text(log)
    lags = diagnosis.read_lags(run, "r2d2", 10)
    assert lags.replay is None
    assert (lags.learner_steps.tolist(), lags.logged.tolist()) == ([10, 20], [2.5, 7.5])
    (row,) = lags.rows()
    assert (row.mean, row.p10, row.median, row.p90) == (5.0, 2.5, 2.5, 7.5)

    over_time, of_replay = diagnosis.draw_lags(lags).axes
    (line,) = over_time.lines
    assert np.asarray(line.get_ydata()).tolist() == [2.5, 7.5]
    assert [text.get_text() for text in of_replay.texts] == ["none was saved"]


def test_rows_of_updates_that_a_resume_undid_are_not_averaged(tmp_path: pathlib.Path) -> None:
    run = saved_runs.save(tmp_path / "run")
    run.folder.logs.mkdir()
    log = "learner_steps,parameter_lag\n10,2\n20,100\n30,100\n15,4\n25,6\n3"  # and part of a row
    run.folder.log("learner-r2d2").write_text(log)
    assert diagnosis.read_lags(run, "r2d2", 10).logged.tolist() == [2, 4, 6]


def test_the_figures_histograms_are_of_the_samples_and_of_the_items() -> None:
    replay = Sampled(np.array([0, 0, 0, 50]), np.array([0.75, 0.75, 0.75, 0.25]))
    _, axes = diagnosis.draw_lags(Lags(np.empty(0), np.empty(0), replay)).axes
    sampled, stored = (p.get_data()[0] for p in axes.patches if isinstance(p, StepPatch))
    assert (sampled[0], sampled[-1]) == (0.75, 0.25)
    assert (stored[0], stored[-1]) == (pytest.approx(0.5), pytest.approx(0.5))


@pytest.mark.parametrize("name", _ROWS)
@pytest.mark.parametrize("terminal", [True, False])
def test_a_row_is_a_line_of_80_columns_and_a_task_a_table(name: str, terminal: bool) -> None:
    console = Console(file=io.StringIO(), width=80, force_terminal=terminal, no_color=True)
    diagnosis.show(console, "Measured", _ROWS[name])
    assert isinstance(console.file, io.StringIO)
    lines = re.sub(r"\x1b\[[0-9;]*m", "", console.file.getvalue()).splitlines()
    assert max(map(len, lines)) <= 80
    for task in _TASKS:
        assert any(f"Measured, {task}" in line for line in lines)
    whole = "0.0001235" if name == "discrepancy" else "10,000"
    assert sum(whole in line for line in lines) == len(_ROWS[name])


def test_default_burn_ins_are_the_papers_in_proportion() -> None:
    assert diagnosis.default_burn_ins(Layout(burn_in=40, length=80, period=40)) == [0, 20, 40]
    assert diagnosis.default_burn_ins(Layout(burn_in=6, length=16, period=8)) == [0, 4, 6, 8]


def test_an_environment_gets_the_actions_that_the_agent_makes_for_it(
    tmp_path: pathlib.Path,
) -> None:
    player = evaluation.load(saved_runs.save(tmp_path / "run"))
    given = list[np.ndarray]()

    def right(action: np.ndarray, _: Any) -> np.ndarray:
        given.append(action)
        return np.full_like(action, 2)

    agent = dataclasses.replace(player.agent, environment_action=right)
    found = diagnosis._remembering(dataclasses.replace(player, agent=agent), "catch", 1, 2)
    assert (found.episodes, len(given)) == (2, 9)


def _heights(axes: Axes) -> list[float]:
    return [bar.get_height() for bar in axes.patches if isinstance(bar, Rectangle)]


def _drawn(axes: Axes) -> list[float]:
    return np.asarray(axes.lines[0].get_ydata()).tolist()


def test_the_figures_show_the_rows() -> None:
    rows = [
        Discrepancy("t", lag, start, burn_in, float(lag + burn_in), 0, 1.5, 0, 1)
        for lag in (10, 0)
        for start in ("zero", "stored")
        for burn_in in (0, 2)
    ]
    figure = diagnosis.draw_discrepancy(rows)
    first, last = figure.axes
    # Strategy by strategy, the lags in order.
    assert _heights(first) == [0, 10, 2, 12, 0, 10, 2, 12]
    assert _heights(last) == [1.5] * 8
    names = [text.get_text() for text in figure.legends[0].get_texts()]
    assert names[1] == "zero state, burn-in 2"

    played = [Memory("t", k, float(k or 9), k or 9, k or 9, 0.5, 0.25, 1) for k in (1, 4, None)]
    returns, match, difference = diagnosis.draw_memory(played).axes
    assert [label.get_text() for label in returns.get_xticklabels()] == ["∞", "4", "1"]
    assert _drawn(returns) == [9, 4, 1]
    assert _drawn(match) == [50] * 3
    assert _drawn(difference) == [0.25] * 3
