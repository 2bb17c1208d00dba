"""Distributions of parameter lags, from the log and from a saved replay."""

import pathlib

import numpy as np
import pytest
from matplotlib.patches import StepPatch

from analysis.diagnosis import figures, lag
from analysis.diagnosis.saved_replay import Sampled
from run_folder.settings import SettingsError
from tests.run_folder import saved_runs


def test_weighted_quantiles_are_those_of_repeated_values() -> None:
    rng = np.random.default_rng(0)
    values, weights = rng.integers(20, size=50), rng.integers(1, 6, size=50)
    repeated = np.repeat(values, weights)
    for quantile in (0.0, 0.1, 0.5, 0.9, 1.0):
        expected = np.quantile(repeated, quantile, method="inverted_cdf")
        assert lag.weighted_quantile(values, weights, quantile) == expected


def test_what_is_stored_counts_alike_however_often_it_is_sampled() -> None:
    """Three of four samples are of one item, which is drawn three times as often."""
    replay = Sampled(np.array([10, 10, 10, 50]), np.array([0.75, 0.75, 0.75, 0.25]))
    logged, sampled, stored = lag.rows(lag.Lags(np.array([1.0, 2.0]), np.array([4.0, 8.0]), replay))
    assert (logged.of, logged.mean, logged.count) == ("logged", 6.0, 2)
    assert (sampled.of, sampled.mean, sampled.p90) == ("sampled", 20.0, 50.0)
    assert stored.of == "stored"
    assert stored.mean == pytest.approx(30.0)


def test_the_log_gives_the_mean_lag_over_time(tmp_path: pathlib.Path) -> None:
    run = saved_runs.save(tmp_path / "run")
    with pytest.raises(SettingsError, match="neither logged a parameter lag nor saved a replay"):
        lag.measure(run, "r2d2", 10)
    run.folder.logs.mkdir()
    log = "learner_steps,parameter_lag,loss\n3,nan,1\n10,2.5,1\n20,7.5,nan\n"
    run.folder.log("learner-r2d2").write_text(log)
    lags = lag.measure(run, "r2d2", 10)
    assert lags.replay is None
    assert (lags.learner_steps.tolist(), lags.logged.tolist()) == ([10, 20], [2.5, 7.5])
    (row,) = lag.rows(lags)
    assert (row.mean, row.p10, row.median, row.p90) == (5.0, 2.5, 2.5, 7.5)

    over_time, of_replay = figures.of_lag(lags).axes
    (line,) = over_time.lines
    assert np.asarray(line.get_ydata()).tolist() == [2.5, 7.5]
    assert [text.get_text() for text in of_replay.texts] == ["none was saved"]


def test_rows_of_updates_that_a_resume_undid_are_not_averaged(tmp_path: pathlib.Path) -> None:
    run = saved_runs.save(tmp_path / "run")
    run.folder.logs.mkdir()
    log = "learner_steps,parameter_lag\n10,2\n20,100\n30,100\n15,4\n25,6\n3"  # and part of a row
    run.folder.log("learner-r2d2").write_text(log)
    assert lag.measure(run, "r2d2", 10).logged.tolist() == [2, 4, 6]


def test_the_figures_histograms_are_of_the_samples_and_of_the_items() -> None:
    replay = Sampled(np.array([0, 0, 0, 50]), np.array([0.75, 0.75, 0.75, 0.25]))
    _, axes = figures.of_lag(lag.Lags(np.empty(0), np.empty(0), replay)).axes
    sampled, stored = (p.get_data()[0] for p in axes.patches if isinstance(p, StepPatch))
    assert (sampled[0], sampled[-1]) == (0.75, 0.25)
    assert (stored[0], stored[-1]) == (pytest.approx(0.5), pytest.approx(0.5))
