"""Few points that say what many do."""

import numpy as np
import pytest

from analysis.report import curves


def test_bins_are_of_equal_width_and_hold_means_and_quarters() -> None:
    x, y = np.random.default_rng(0).normal(size=(2, 500))
    found = curves.binned(x, y, bins=7)
    edges = np.linspace(x.min(), x.max(), 8)
    for i in range(7):
        inside = (x >= edges[i]) & ((x < edges[i + 1]) if i < 6 else (x <= edges[i + 1]))
        naive = (x[inside].mean(), y[inside].mean(), *np.quantile(y[inside], (0.25, 0.75)))
        np.testing.assert_allclose([curve[i] for curve in found], naive)


def test_empty_bins_have_no_points() -> None:
    found = curves.binned(np.array([0.0, 1.0, 10.0]), np.array([1.0, 3.0, 5.0]), bins=5)
    np.testing.assert_allclose(found.x, [0.5, 10])
    np.testing.assert_allclose(found.mean, [2, 5])
    np.testing.assert_allclose(found.low, [1.5, 5])


@pytest.mark.parametrize(
    ("count", "points"), [(0, 0), (1, 1), (19, 1), (20, 2), (999, 99), (100_000, 100)]
)
def test_points_are_few_however_many_values_there_are(count: int, points: int) -> None:
    x = np.arange(count, dtype=float)
    found = curves.binned(x, x, least=10)
    assert [len(curve) for curve in found] == [points] * 4


def test_values_at_one_place_are_one_point() -> None:
    found = curves.binned(np.full(50, 3.0), np.arange(50.0))
    assert (found.x.tolist(), found.mean.tolist()) == ([3.0], [24.5])


def test_rates_add_up_to_what_was_counted() -> None:
    seconds = np.array([10.0, 20.0, 50.0, 60.0, 110.0])
    counts = np.array([0.0, 100.0, 100.0, 400.0, 450.0])
    found = curves.rates(seconds, counts, bins=4, unit=10.0)
    np.testing.assert_allclose(found.x, [2.25, 4.75, 7.25, 9.75])
    # 10 to 35, 35 to 60, 60 to 85, 85 to 110 seconds.
    np.testing.assert_allclose(found.mean * 25, [100, 300, 25, 25])


def test_parts_are_not_shorter_than_what_was_logged() -> None:
    found = curves.rates(np.array([0.0, 10.0, 20.0]), np.array([0.0, 5.0, 5.0]))
    np.testing.assert_allclose(found.mean, [0.5, 0])


@pytest.mark.parametrize("seconds", [[], [5.0], [5.0, 5.0]])
def test_no_time_has_no_rate(seconds: list[float]) -> None:
    found = curves.rates(np.array(seconds), np.array(seconds))
    assert [len(curve) for curve in found] == [0] * 4
