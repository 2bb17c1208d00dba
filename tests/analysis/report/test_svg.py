"""Figures become parts of the page: in its colours, with nothing from elsewhere."""

import re
from xml.etree import ElementTree

import numpy as np
import pytest
from matplotlib.figure import Figure

from analysis.report import curves, figures, svg

NAMES = [f"atari:game_{i}" for i in range(5)]


def _curves() -> Figure:
    x = np.linspace(0, 1_500_000, 400)
    curve = curves.binned(x, np.cos(x / 2e5))
    traces = [figures.Trace(curve, 0, band=True), figures.Trace(curve, 3, "o--")]
    return figures.curves(traces, "a < b & c", "actor steps", reference=0.5)


def _bars() -> Figure:
    groups = [figures.Bars([1, 20, -3, np.nan, 5_000], 0), figures.Bars([1, 2, 3, 4, 5], 1)]
    return figures.bars(NAMES, groups, "Bars", "%", reference=100)


def _histogram() -> Figure:
    edges = np.geomspace(0.01, 20, 11)
    return figures.histogram([figures.Steps(np.ones(10) / 10, edges, 2)], "Bins", "x", "share")


FIGURES = pytest.mark.parametrize("make", [_curves, _bars, _histogram])


@FIGURES
def test_a_figure_has_the_colours_of_its_page(make: "type[Figure]") -> None:
    text = svg.inline(make(), "figure", "title")
    assert "currentColor" in text
    colours = set(re.findall(r"var\(--line-\d\)", text))
    assert (
        colours
        == {
            _curves: {"var(--line-0)", "var(--line-3)"},
            _bars: {"var(--line-0)", "var(--line-1)"},
            _histogram: {"var(--line-2)"},
        }[make]
    )
    assert not re.findall(r"[:\"] ?#[0-9a-f]{6}", text)  # of its own it has none
    assert "<style" not in text
    assert "font-family" not in text


@FIGURES
def test_a_figure_refers_to_nothing_but_itself(make: "type[Figure]") -> None:
    text = svg.inline(make(), "figure", "title")
    assert "://" not in text
    assert "xmlns" not in text
    root = ElementTree.fromstring(text)
    ids = [element.attrib["id"] for element in root.iter() if "id" in element.attrib]
    referred = re.findall(r'url\(#(\w+)\)|href="#(\w+)"', text)
    assert len(set(ids)) == len(ids)
    assert {a or b for a, b in referred} == set(ids) != set()


def test_figures_of_one_page_share_no_id() -> None:
    first, second = (
        set(re.findall(r'id="(\w+)"', svg.inline(_curves(), name, name))) for name in ("a", "b")
    )
    assert first
    assert not first & second


def test_a_figure_can_be_read_without_being_seen() -> None:
    root = ElementTree.fromstring(svg.inline(_bars(), "bars", 'every "task" & more'))
    assert root.attrib["aria-label"] == 'every "task" & more'
    assert root.attrib["role"] == "img"
    assert not {"width", "height"} & set(root.attrib)  # the page decides
    words = [element.text for element in root.iter("text")]
    assert {*NAMES, "Bars", "%"} <= set(words)
    assert "1k" in words  # the longest bar is 5,000


def test_curves_are_drawn_where_they_are() -> None:
    """A line through two corners of the axes, to a tenth of a unit."""
    curve = curves.binned(np.array([0.0, 10.0]), np.array([0.0, 1.0]))
    text = svg.inline(figures.curves([figures.Trace(curve, 0)], "t", "x"), "t", "t")
    (path,) = [
        element.attrib["d"]
        for element in ElementTree.fromstring(text).iter("path")
        if "--line-0" in element.attrib.get("style", "")
    ]
    (x0, y0), (x1, y1) = ([float(n) for n in point.split()] for point in re.split("[ML]", path)[1:])
    assert x0 < x1
    assert y0 > y1  # downwards is larger
    assert len(path) < 40


def test_one_point_is_a_dot() -> None:
    curve = curves.binned(np.array([5.0]), np.array([1.0]))
    text = svg.inline(figures.curves([figures.Trace(curve, 0)], "t", "x"), "t", "t")
    uses = [e for e in ElementTree.fromstring(text).iter("use") if "line-0" in e.attrib["style"]]
    assert len(uses) == 1
