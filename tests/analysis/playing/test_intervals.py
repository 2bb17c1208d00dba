"""Bootstrap intervals: against loops that resample one episode after the other."""

import math

import numpy as np
import pytest

from analysis.playing import intervals
from environments import scores

RESAMPLES = 200  # a loop over more would take seconds


@pytest.fixture(autouse=True)
def few_resamples(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(intervals, "RESAMPLES", RESAMPLES)


def _loop_of_means(values: np.ndarray, rng: np.random.Generator) -> list[float]:
    means = []
    for drawn in rng.integers(len(values), size=(RESAMPLES, len(values))):
        total = 0.0
        for i in drawn:
            total += values[i]
        means.append(total / len(values))
    return means


def _percentile(values: list[float], fraction: float) -> float:
    """Linear between the two order statistics around it."""
    ordered, at = sorted(values), fraction * (len(values) - 1)
    below = math.floor(at)
    return ordered[below] + (at - below) * (ordered[below + 1] - ordered[below])


def test_the_interval_of_a_mean_is_the_middle_of_its_resamples() -> None:
    values = np.random.default_rng(1).exponential(size=23)
    means = _loop_of_means(values, np.random.default_rng(0))
    low, high = intervals.of_mean(values)
    assert low == pytest.approx(_percentile(means, 0.025))
    assert high == pytest.approx(_percentile(means, 0.975))
    assert low < values.mean() < high


def test_the_interval_of_a_difference_resamples_both() -> None:
    values, others = np.random.default_rng(5).normal(size=12), np.arange(7.0)
    rng = np.random.default_rng(0)
    pairs = zip(_loop_of_means(values, rng), _loop_of_means(others, rng), strict=True)
    differences = [x - y for x, y in pairs]
    low, high = intervals.of_difference(values, others)
    assert low == pytest.approx(_percentile(differences, 0.025))
    assert high == pytest.approx(_percentile(differences, 0.975))


def test_the_interval_of_an_aggregate_resamples_every_task_by_itself() -> None:
    rng = np.random.default_rng(2)
    tasks = [rng.normal(mean, 0.3, size=n) for mean, n in ((0.2, 5), (1.0, 9), (3.0, 7))]
    rng = np.random.default_rng(0)
    means = [_loop_of_means(values, rng) for values in tasks]
    aggregates = [scores.aggregate(row) for row in zip(*means, strict=True)]
    found = intervals.of_aggregate(tasks)
    for name in scores.Aggregate._fields:
        of_resamples = [getattr(aggregate, name) for aggregate in aggregates]
        expected = (_percentile(of_resamples, 0.025), _percentile(of_resamples, 0.975))
        assert found[name] == pytest.approx(expected)
    capped = np.minimum(means, 1)
    assert (capped < 1).any()  # resamples lie on both sides of the cap
    assert (capped == 1).any()


def test_the_same_episodes_always_give_the_same_interval() -> None:
    values = np.random.default_rng(3).normal(size=40)
    assert intervals.of_mean(values) == intervals.of_mean(values)


def test_of_many_episodes_no_more_than_a_part_of_the_resamples_is_in_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    values = np.random.default_rng(6).normal(size=40)
    whole, most = intervals.of_mean(values), list[int]()

    def mean(drawn: np.ndarray, axis: int) -> np.ndarray:
        most.append(drawn.size)
        return np.asarray(drawn.mean(axis=axis))

    monkeypatch.setattr(intervals, "_AT_ONCE", 130)
    assert intervals.of_mean(values) == pytest.approx(whole)
    assert intervals._resampled(mean, values).shape == (1, RESAMPLES)
    assert set(most) == {3 * 40, 2 * 40}  # 200 are 66 times three, and two


def test_of_several_tasks_the_tasks_stay() -> None:
    assert intervals.of_mean([0.0, 0.0], [10.0, 10.0, 10.0]) == (5.0, 5.0)
    low, high = intervals.of_mean([0.0, 0.0], [0.0, 10.0])
    assert (low, high) == (0.0, 5.0)


def test_many_episodes_give_the_interval_of_a_normal_mean(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(intervals, "RESAMPLES", 10_000)
    values = np.random.default_rng(4).uniform(size=400)
    low, high = intervals.of_mean(values)
    standard_error = values.std() / math.sqrt(len(values))
    assert low == pytest.approx(values.mean() - 1.96 * standard_error, abs=0.1 * standard_error)
    assert high == pytest.approx(values.mean() + 1.96 * standard_error, abs=0.1 * standard_error)


def test_a_single_episode_says_nothing_of_how_much_others_differ() -> None:
    one, two = np.array([3.0]), np.array([1.0, 2.0])
    assert np.isnan(intervals.of_mean(one)).all()
    assert np.isnan(intervals.of_difference(one, two)).all()
    assert np.isnan(intervals.of_difference(two, one)).all()
    assert np.isnan(list(intervals.of_aggregate([one, two]).values())).all()


def test_a_median_of_three_lies_between_the_least_and_the_largest() -> None:
    assert intervals.of_median([4.0, 1.0, 2.0]) == (1.0, 4.0)
    for same in ([2.0], [2.0, 2.0, 2.0]):
        assert np.isnan(intervals.of_median(same)).all()
