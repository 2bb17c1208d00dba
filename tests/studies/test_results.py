"""The files, intervals and tables of the studies of corrections and of self-tuning."""

import math
import pathlib

import numpy as np
import pytest

from studies import corrections_results, records, self_tuning
from studies.corrections_results import CORRECTIONS, Result, Run
from studies.intervals import Interval, interval


def test_the_interval_holds_the_true_mean_19_times_in_20() -> None:
    # Their deviations from 3 are ±2, ±1 and 0: s² = 10 / 4, and t is 2.776 at four degrees.
    found = interval([1.0, 2.0, 3.0, 4.0, 5.0])
    assert found == pytest.approx((3.0, 2.776 * np.sqrt(2.5 / 5)))
    for size in (3, 5):
        samples = np.random.default_rng(0).normal(7.0, 2.0, size=(4_000, size))
        covered = np.mean([abs(x.mean - 7.0) <= x.margin for x in map(interval, samples)])
        assert 0.94 < covered < 0.96  # its standard error is 0.003
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


def test_a_correction_has_a_row_with_an_interval_of_each_setting() -> None:
    results = {
        Run(task, correction, 0.0, lag, seed): Result(1, 10.0 * i + lag + (task == "b"), 0.0)
        for i, correction in enumerate(CORRECTIONS)
        for task in ("a", "b")
        for lag in (0, 5)
        for seed in range(5)
    }
    found = corrections_results.intervals(results, "final_return", task="b", lag=5)
    assert found == {c: Interval(10.0 * i + 6.0, 0.0) for i, c in enumerate(CORRECTIONS)}
    assert corrections_results.table({"first": found, "second": found}).splitlines() == [
        "| | first | second |",
        "|---|---|---|",
        "| vtrace | 6.00 ± 0.00 | 6.00 ± 0.00 |",
        "| one_step | 16.00 ± 0.00 | 16.00 ± 0.00 |",
        "| epsilon | 26.00 ± 0.00 | 26.00 ± 0.00 |",
        "| none | 36.00 ± 0.00 | 36.00 ± 0.00 |",
    ]


def test_each_run_of_self_tuning_differs_from_a_plain_one_in_one_thing() -> None:
    for run in self_tuning.runs():
        plain = self_tuning._plain(run.agent, run.seed)
        changed = [name for name in run._fields if getattr(run, name) != getattr(plain, name)]
        assert len(changed) <= 1, run


def test_tables_of_self_tuning_hold_means_over_seeds() -> None:
    results = {}
    for run in self_tuning.runs():
        value = run.discount + run.seed + 10 * (run.agent == "stacx")
        results[run] = self_tuning.Result(1, value, -value, *[math.nan] * 4)
    discount, baseline, replay, subsets, _ = self_tuning.tables(results, "final_return")
    # Seeds 0, 1 and 2: their mean is 1, s is 1, and t is 4.303 at two degrees.
    margin = f"{4.303 / math.sqrt(3):.2f}"
    assert discount.splitlines() == [
        "| discount | 0.9 | 0.99 | 0.999 |",
        "| --- | --- | --- | --- |",
        f"| impala | 1.90 ± {margin} | 1.99 ± {margin} | 2.00 ± {margin} |",
        f"| stacx | 11.90 ± {margin} | 11.99 ± {margin} | 12.00 ± {margin} |",
    ]
    assert len(baseline.splitlines()) == len(replay.splitlines()) == 4
    names = [line.split(" | ")[0].removeprefix("| ") for line in subsets.splitlines()[2:]]
    assert names == [", ".join(subset) or "none" for subset in self_tuning.SUBSETS]


@pytest.mark.slow
def test_impala_is_stac_with_nothing_self_tuned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(self_tuning, "UPDATES", 2)
    monkeypatch.setattr(self_tuning.training, "EVALUATION_EPISODES", 4)
    plain = self_tuning.train(self_tuning._plain("impala", 0))
    tuned = self_tuning.train(self_tuning._plain("stacx", 0))
    assert math.isnan(plain.gamma)
    assert math.isnan(plain.auxiliary_alpha)
    assert tuned.gamma == pytest.approx(0.99, abs=1e-3)
    assert tuned.auxiliary_alpha == pytest.approx(0.99, abs=1e-3)
    assert plain.steps == tuned.steps > 0
