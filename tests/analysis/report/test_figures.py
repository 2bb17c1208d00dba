"""Axes that can be read: short numbers, and no differences that are none."""

import itertools

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from analysis.report import figures
from analysis.report.curves import Curve, binned


def _axes(figure: Figure) -> Axes:
    figure.draw_without_rendering()
    (axes,) = figure.axes
    return axes


def _curve(*values: float) -> figures.Trace:
    return figures.Trace(binned(np.arange(len(values), dtype=float), np.asarray(values)), 0)


def _bars(axes: Axes) -> list[Rectangle]:
    return [patch for patch in axes.patches if isinstance(patch, Rectangle)]


def _ticks(axes: Axes) -> list[str]:
    return [label.get_text() for label in axes.get_yticklabels()]


@pytest.mark.parametrize(
    ("values", "ticks"),
    [
        ((0.0, 1_500_000.0), {"0", "400k", "800k", "1.2M"}),
        ((-21.0, 21.0), {"−10", "0", "10"}),
        ((0.0006, 0.0002), {"0.0002", "0.0004", "0.0006"}),
    ],
)
def test_numbers_are_short(values: tuple[float, ...], ticks: set[str]) -> None:
    assert ticks <= set(_ticks(_axes(figures.curves([_curve(*values)], "t", "x"))))


def test_what_hardly_changes_looks_so() -> None:
    low, high = _axes(figures.curves([_curve(0.0006, 0.00059999)], "t", "x")).get_ylim()
    assert high - low == pytest.approx(0.02 * 0.0006, rel=0.01)
    assert low < 0.00059999 < 0.0006 < high
    axes = _axes(figures.curves([_curve(1.0, 2.0)], "t", "x"))
    assert axes.get_ylim() == pytest.approx((0.95, 2.05))


@pytest.mark.parametrize(
    ("values", "ticks"),
    [
        ((0.0011, 0.0012), ["0.0005", "0.001", "0.002"]),
        ((1e-4, 8e-4), ["0.0001", "0.0002", "0.0005"]),
        ((1e-4, 7e-3), ["0.0001", "0.0003", "0.001", "0.003"]),
        ((1e-5, 0.5), ["1e−05", "0.0001", "0.001", "0.01", "0.1"]),
    ],
)
def test_a_logarithmic_axis_has_ticks_that_can_be_told_from_each_other(
    values: tuple[float, ...], ticks: list[str]
) -> None:
    axes = _axes(figures.curves([_curve(*values)], "t", "x", log="y"))
    assert axes.get_yscale() == "log"
    assert axes.get_xscale() == "linear"
    low, high = axes.get_ylim()
    assert low < min(values) < max(values) < high
    places = [place for place in axes.get_yticks() if low <= place <= high]
    assert [figures.short(place, None) for place in places] == ticks
    assert not any(label.get_text() for label in axes.get_yticklabels(minor=True))


def test_what_is_drawn_along_a_logarithmic_axis_has_an_even_one_beside_it() -> None:
    curve = figures.Trace(binned(np.geomspace(1e-4, 1, 50), np.linspace(-1, 1, 50)), 0, "o")
    axes = _axes(figures.curves([curve], "t", "x", log="x"))
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "linear")


def test_between_what_is_counted_is_no_tick() -> None:
    def ticks(*values: float) -> list[float]:
        x = np.asarray(values)
        axes = _axes(figures.curves([figures.Trace(Curve(x, x, x, x), 0)], "t", "x"))
        low, high = axes.get_xlim()
        return [float(place) for place in axes.get_xticks() if low <= place <= high]

    assert ticks(1.0, 2.0, np.nan, 3.0) == [1, 2, 3]
    assert [place for place in ticks(1.0, 2.0, 2.5) if place % 1]


def test_every_task_has_a_row_in_order() -> None:
    names = [f"task {i}" for i in range(57)]
    figure = figures.bars(names, [figures.Bars(range(57), 0)], "t", "x")
    axes = _axes(figure)
    assert _ticks(axes) == names
    first, last = axes.get_yticks()[[0, -1]]
    assert axes.transData.transform((0, first))[1] > axes.transData.transform((0, last))[1]
    assert [bar.get_width() for bar in _bars(axes)] == list(range(57))
    assert figure.get_figheight() > 57 * 0.15  # inches: room for a line of text each


@pytest.mark.parametrize(
    ("lengths", "scale"), [([1, 2, 90], "linear"), ([1, 2, 900], "symlog"), ([0, 0], "linear")]
)
def test_bars_of_very_different_lengths_can_all_be_seen(lengths: list[float], scale: str) -> None:
    names = [str(i) for i in range(len(lengths))]
    axes = _axes(figures.bars(names, [figures.Bars(lengths, 0)], "t", "x"))
    assert axes.get_xscale() == scale


def test_bars_of_several_lines_stand_below_each_other() -> None:
    groups = [figures.Bars([1, np.nan], 0), figures.Bars([2, 3], 1)]
    bars = _bars(_axes(figures.bars(["a", "b"], groups, "t", "x")))
    spans = sorted((bar.get_y(), bar.get_y() + bar.get_height()) for bar in bars)
    assert all(end <= begin + 1e-9 for (_, end), (begin, _) in itertools.pairwise(spans))
    assert spans[0][0] == pytest.approx(-0.4)
    assert spans[-1][1] == pytest.approx(1.4)


@pytest.mark.parametrize(
    ("hours", "ticks"),
    [
        (0.0144, ["0:00:00", "0:00:10", "0:00:20", "0:00:30", "0:00:40", "0:00:50"]),
        (0.9, ["0:00", "0:10", "0:20", "0:30", "0:40", "0:50"]),
        (30.0, ["0:00", "6:00", "12:00", "18:00", "24:00", "30:00"]),
    ],
)
def test_hours_are_marked_as_a_clock(hours: float, ticks: list[str]) -> None:
    curve = Curve(*(np.asarray([0.0, hours]),) * 4)
    axes = _axes(figures.curves([figures.Trace(curve, 0)], "A run", figures.HOURS))
    low, high = axes.get_xlim()
    marked = zip(axes.get_xticks(), axes.get_xticklabels(), strict=True)
    assert [label.get_text() for place, label in marked if low <= place <= high] == ticks


def test_a_clock_has_a_sign_and_thousands_of_hours() -> None:
    assert figures.clock(-900) == "−0:15"
    assert figures.clock(1234 * 3600 + 1800) == "1,234:30"
    assert figures.clock(7200, with_seconds=True) == "2:00:00"
