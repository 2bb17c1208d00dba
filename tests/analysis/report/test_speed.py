"""Rates are what was counted over the time that it took."""

import pathlib

import numpy as np
import pytest

from analysis.report import run, speed
from run_folder.log_reader import Log
from tests.analysis.report.made_up import Folder
from tests.analysis.report.pages import tables


def test_a_mean_rate_is_over_the_time_asked_for() -> None:
    walltime = np.array([100.0, 200.0, 300.0, 400.0])
    log = Log({"walltime": walltime, "steps": np.array([0.0, 100.0, 400.0, 1_000.0])}, {})
    assert speed.mean_rate(log, "steps") == pytest.approx(1_000 / 300)
    assert speed.mean_rate(log, "steps", seconds=200) == pytest.approx(900 / 200)
    assert np.isnan(speed.mean_rate(log, "steps", seconds=50))
    assert np.isnan(speed.mean_rate(Log({}, {}), "steps"))


def test_a_learners_rate_counts_every_step_of_its_batches(tmp_path: pathlib.Path) -> None:
    sizes = {"burn_in": "3", "length": "8", "period": "4", "batch_size": "5"}
    folder = Folder(tmp_path / "run", overrides={"r2d2": sizes})
    folder.act([0.0] * 100)  # 1,000 steps in ten seconds
    folder.learn("r2d2", rows=100, loss=1.0)  # two updates in ten seconds
    lines = run.lines(run.load([str(folder.path)]))
    assert speed.steps_of_update(lines[0]) == 5 * (3 + 8)
    section = speed.section(lines, [("run", 0)])
    assert [c.name for c in section.charts] == ["actor-steps-per-second", "updates-per-second"]
    ((_, row),) = tables(section.body)
    assert row == ["run", "100", "100", "0.2", "0.2", "11"]
