"""The file, the intervals, the tables and the plots of the study of R2D2."""

import pathlib

import matplotlib.image
import numpy as np
import pytest

from analysis.playing import intervals
from analysis.playing.intervals import Interval
from studies.plot_performance import drawn_from
from studies.reproduction_results import (
    POINTS,
    Comparison,
    Estimate,
    Result,
    Run,
    append,
    cost,
    difference,
    draw,
    fingerprint,
    mean,
    read,
    returns,
    table,
    verdicts,
)

ARMS = {"one": ["a", "b"], "two": ["a"]}


def _result(final: float = 0.0) -> Result:
    return Result(1_000, 50, 7.5, final, tuple(np.linspace(0.0, final, POINTS).round(3).tolist()))


def _results() -> dict[Run, Result]:
    """Arm b ends 10 above arm a; their seeds differ by up to 2."""
    return {
        Run("one", arm, seed): _result(offset + seed)
        for arm, offset in (("a", 0.0), ("b", 10.0))
        for seed in range(3)
    }


def test_what_was_appended_is_read_again(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "data" / "runs.csv"
    assert read(path) == {}
    known = {Run("memory:recall", "zero, burn-in 2", 3): _result(0.25), Run("b", "c", 0): _result()}
    for run, result in known.items():
        append(path, run, result)
    assert read(path) == known
    assert len(path.read_text().splitlines()) == 3


def test_a_window_without_an_episode_is_kept(tmp_path: pathlib.Path) -> None:
    run, result = Run("a", "b", 0), _result()._replace(curve=(np.nan, 1.0))
    append(tmp_path / "runs.csv", run, result)
    found = read(tmp_path / "runs.csv")[run].curve
    np.testing.assert_array_equal(found, [np.nan, 1.0])


def test_the_interval_of_five_values_is_as_short_as_is_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(intervals, "RESAMPLES", 500)  # as good, and faster
    samples = np.random.default_rng(0).normal(7.0, 2.0, size=(1_000, 5))
    bounds = [mean(sample.tolist()).interval for sample in samples]
    covered = np.mean([low <= 7.0 <= high for low, high in bounds])
    assert 0.79 < covered < 0.87  # its standard error is 0.012


def test_a_difference_is_of_the_first_less_the_second() -> None:
    assert difference([10.0, 11.0], [1.0, 1.0]) == (9.5, (9.0, 10.0))


def test_an_estimate_is_written_with_the_digits_that_matter() -> None:
    assert str(Estimate(-0.5, Interval(-0.714, 0.25))) == "−0.50 [−0.71, 0.25]"
    assert str(Estimate(1_234.56, Interval(99.9, 2_000.0))) == "1,235 [100, 2,000]"
    assert str(mean([0.5])) == "0.50"  # a single seed says nothing of others


def test_the_last_quarter_is_of_the_last_windows() -> None:
    curve = (*[0.0] * 15, 1.0, 2.0, 3.0, 4.0, 5.0)
    results = {Run("one", "a", 0): _result(7.0)._replace(curve=curve)}
    assert returns(results, "one", "a") == [(7.0, 3.0)]


def test_the_table_has_a_row_for_each_arm_that_was_run() -> None:
    results = {run: x._replace(curve=(-x.final_return,) * POINTS) for run, x in _results().items()}
    assert table(results, ARMS).splitlines()[2:] == [
        "| one | a | 1.00 [0.00, 2.00] | −1.00 [−2.00, 0.00] | 3 |",
        "| one | b | 11.00 [10.00, 12.00] | −11.00 [−12.00, −10.00] | 3 |",
    ]


def test_a_verdict_is_of_the_whole_interval() -> None:
    comparisons = [
        Comparison("one", "b", "a"),
        Comparison("one", "a", "b"),
        Comparison("one", "a", "a"),
        Comparison("two", "a", "b"),
    ]
    results = {run: x._replace(curve=(-x.final_return,) * POINTS) for run, x in _results().items()}
    rows = [row.split(" | ") for row in verdicts(results, comparisons).splitlines()[2:]]
    assert [row[1] for row in rows] == ["b > a", "a > b", "a > a"]
    assert [row[3] for row in rows] == ["yes", "no, the opposite", "undecided"]
    assert [row[5] for row in rows] == ["no, the opposite |", "yes |", "undecided |"]
    assert rows[0][2].startswith("10.00 [8.")


def test_the_cost_is_of_all_runs() -> None:
    results = {run: result._replace(cpu_seconds=1_200.0) for run, result in _results().items()}
    assert cost(results) == "6 runs, 2.0 hours of one core."


def test_a_plot_says_what_it_was_drawn_from(tmp_path: pathlib.Path) -> None:
    results, path = _results(), tmp_path / "images" / "image.png"
    draw(results, ARMS, path)
    assert drawn_from(path) == fingerprint(results, ARMS)
    assert matplotlib.image.imread(path).std() > 0


def test_a_fingerprint_is_of_the_runs_that_are_shown() -> None:
    results = _results()
    reordered = dict(reversed(results.items()))
    assert fingerprint(reordered, ARMS) == fingerprint(results, ARMS)
    elsewhere = {**results, Run("three", "a", 0): _result(), Run("one", "c", 0): _result()}
    assert fingerprint(elsewhere, ARMS) == fingerprint(results, ARMS)
    changed = {**results, Run("one", "a", 0): _result(5.0)}
    assert fingerprint(changed, ARMS) != fingerprint(results, ARMS)
