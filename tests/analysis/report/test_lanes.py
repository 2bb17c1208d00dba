"""Lanes with lines between them, however many there are."""

import numpy as np
import pytest
from matplotlib.axes import Axes

from analysis.report import lanes
from analysis.report.figures import COLOURS
from analysis.report.lanes import Link, Span

SPANS = [Span(0, 0, 60, 0), Span(1, 0, 40, 2), Span(1, 40, 90, 0)]
LINKS = [Link(0, 30, 1, 40, 0)]


def _axes(names: list[str], spans: list[Span], links: list[Link]) -> Axes:
    figure = lanes.figure(names, spans, links, "t", "steps")
    figure.draw_without_rendering()
    (axes,) = figure.axes
    return axes


def test_each_colour_is_a_line_along_lanes_one_between_them_and_dots() -> None:
    axes = _axes(["a", "b"], SPANS, LINKS)
    found = {(line.get_color(), line.get_marker()): line for line in axes.lines[:]}
    dots = found[COLOURS[0], "o"]
    np.testing.assert_equal([dots.get_xdata(), dots.get_ydata()], [[40], [1]])
    along, between, _ = [line for line in axes.lines if line.get_color() == COLOURS[0]]
    np.testing.assert_equal(along.get_xdata(), [0, 60, np.nan, 40, 90, np.nan])
    np.testing.assert_equal(along.get_ydata(), [0, 0, np.nan, 1, 1, np.nan])
    np.testing.assert_equal(between.get_xdata(), [30, 40, np.nan])
    np.testing.assert_equal(between.get_ydata(), [0, 1, np.nan])
    assert along.get_linewidth() > between.get_linewidth()
    assert axes.lines[0].get_color() == COLOURS[2]  # the first colour is above all others
    first, second = (axes.transData.transform((0, lane))[1] for lane in (0, 1))
    assert first > second
    low, high = axes.get_xlim()
    assert (low, high > 90) == (0, True)


@pytest.mark.parametrize("count", [2, 30, 1_000])
def test_many_lanes_are_narrow_and_not_all_are_named(count: int) -> None:
    names = [f"{i:02}" for i in range(count)]
    figure = lanes.figure(names, [Span(i, 0, 9, 0) for i in range(count)], [], "t", "steps")
    figure.draw_without_rendering()
    (axes,) = figure.axes
    assert figure.get_figheight() <= 11
    shown = [label.get_text() for label in axes.get_yticklabels()]
    assert shown == names[:: 1 if count < 40 else 16]
    places = axes.transData.transform([(0, place) for place in axes.get_yticks()])[:, 1]
    inches = -np.diff(places) / figure.dpi
    assert inches.min() > 9 / 72  # of the text
    assert figure.get_figheight() / count > 0.009


def test_lanes_of_which_nothing_is_known_are_named() -> None:
    axes = _axes(["a", "b"], [Span(0, 0, 0, 0)], [])
    assert [label.get_text() for label in axes.get_yticklabels()] == ["a", "b"]
    assert axes.get_xlim() == (0, 1)
