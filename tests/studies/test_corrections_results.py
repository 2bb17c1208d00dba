"""The file, the intervals and the table of the study of corrections."""

import pathlib

import numpy as np
import pytest

from studies import corrections, records
from studies.corrections_results import (
    CORRECTIONS,
    Result,
    Run,
    intervals,
    table,
)
from studies.intervals import Interval, interval


def test_the_interval_of_five_values() -> None:
    # Their deviations from 3 are ±2, ±1 and 0: s² = 10 / 4, and t is 2.776 at four degrees.
    mean, margin = interval([1.0, 2.0, 3.0, 4.0, 5.0])
    assert mean == 3.0
    assert margin == pytest.approx(2.776 * np.sqrt(2.5 / 5))


def test_the_interval_holds_the_true_mean_19_times_in_20() -> None:
    samples = np.random.default_rng(0).normal(7.0, 2.0, size=(4_000, 5))
    found = [interval(sample) for sample in samples]
    covered = np.mean([abs(x.mean - 7.0) <= x.margin for x in found])
    assert 0.94 < covered < 0.96  # its standard error is 0.003


def test_an_interval_of_another_number_of_values_is_refused() -> None:
    with pytest.raises(ValueError, match="Expected 3 or 5 values, got 4"):
        interval([1.0, 2.0, 3.0, 4.0])


def test_what_was_appended_is_read_again(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "runs.csv"
    assert records.read(path, Run, Result) == {}
    known = {
        Run("memory:recall", "one_step", 0.5, 0, 3): Result(1_000, 0.25, -0.125),
        Run("catch", "none", 0.0, 40, 0): Result(2_000, -1.0, -0.5),
    }
    for run, result in known.items():
        records.append(path, run, result)
    assert records.read(path, Run, Result) == known
    assert len(path.read_text().splitlines()) == 3


def test_intervals_are_those_of_one_setting_by_correction() -> None:
    results = {
        Run(task, correction, 0.0, lag, seed): Result(1, 10.0 * i + lag + (task == "b"), 0.0)
        for i, correction in enumerate(CORRECTIONS)
        for task in ("a", "b")
        for lag in (0, 5)
        for seed in range(5)
    }
    found = intervals(results, "final_return", task="b", lag=5)
    assert found == {c: Interval(10.0 * i + 6.0, 0.0) for i, c in enumerate(CORRECTIONS)}


def test_the_table_has_a_row_for_each_correction() -> None:
    values = {c: Interval(float(i), 0.125) for i, c in enumerate(CORRECTIONS)}
    assert table({"first": values, "second": values}).splitlines() == [
        "| | first | second |",
        "|---|---|---|",
        "| vtrace | 0.00 ± 0.12 | 0.00 ± 0.12 |",
        "| one_step | 1.00 ± 0.12 | 1.00 ± 0.12 |",
        "| epsilon | 2.00 ± 0.12 | 2.00 ± 0.12 |",
        "| none | 3.00 ± 0.12 | 3.00 ± 0.12 |",
    ]


def test_the_file_holds_every_run_of_the_study_and_no_other() -> None:
    runs = corrections.runs()
    assert len(set(runs)) == len(runs) == 120
    assert set(records.read(corrections.DATA, Run, Result)) == set(runs)
