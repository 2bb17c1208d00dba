"""Charts: few points of many, axes that can be read, figures in the page's colours and as files."""

import io
import itertools
import math
import re
from xml.etree import ElementTree

import numpy as np
import pytest
from matplotlib import image
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from analysis.report import charts
from analysis.report.charts import COLOURS, Legend, Segment, Trace, binned

FIRST, *_ = COLOURS
_WHITE = 1.0  # of red, green and blue


def _axes(figure: Figure) -> Axes:
    figure.draw_without_rendering()
    (axes,) = figure.axes
    return axes


def _line(*values: float) -> Trace:
    return Trace(np.arange(len(values), dtype=float), np.asarray(values))


def _curves(traces: list[Trace], title: str = "t", x_label: str = "x", **how: str) -> Figure:
    (figure,) = charts.curves(traces, title, x_label, log=how.get("log", ""))
    return figure


def _ticks(axes: Axes, name: str = "y") -> list[str]:
    """The labels of an axis that lie on it."""
    axis = axes.yaxis if name == "y" else axes.xaxis
    low, high = sorted(axis.get_view_interval())
    marked = zip(axis.get_majorticklocs(), axis.get_majorticklabels(), strict=True)
    return [label.get_text() for place, label in marked if low <= place <= high]


def test_bins_are_of_equal_width_and_hold_means_and_quarters() -> None:
    x, y = np.random.default_rng(0).normal(size=(2, 500))
    found = binned(x, y, bins=7, band=True)
    edges = np.linspace(x.min(), x.max(), 8)
    for i in range(7):
        inside = (x >= edges[i]) & ((x < edges[i + 1]) if i < 6 else (x <= edges[i + 1]))
        assert found.low is not None
        assert found.high is not None
        means = [float(found.x[i]), float(found.y[i])]
        assert means == pytest.approx([x[inside].mean(), y[inside].mean()])
        quarters = [float(found.low[i]), float(found.high[i])]
        assert quarters == pytest.approx(np.quantile(y[inside], (0.25, 0.75)).tolist())


def test_empty_bins_have_no_points() -> None:
    found = binned(np.array([0.0, 1.0, 10.0]), np.array([1.0, 3.0, 5.0]), bins=5)
    assert (found.x.tolist(), found.y.tolist()) == ([0.5, 10], [2, 5])
    at_one_place = binned(np.full(50, 3.0), np.arange(50.0))
    assert (at_one_place.x.tolist(), at_one_place.y.tolist()) == ([3.0], [24.5])


@pytest.mark.parametrize(
    ("count", "points"), [(0, 0), (1, 1), (19, 1), (20, 2), (999, 99), (100_000, 100)]
)
def test_points_are_few_however_many_values_there_are(count: int, points: int) -> None:
    x = np.arange(count, dtype=float)
    found = binned(x, x, least=10)
    assert len(found.x) == len(found.y) == points


def test_rates_add_up_to_what_was_counted() -> None:
    seconds = np.array([10.0, 20.0, 50.0, 60.0, 110.0])
    counts = np.array([0.0, 100.0, 100.0, 400.0, 450.0])
    found = charts.rates(seconds, counts, bins=4)
    np.testing.assert_allclose(3_600 * found.x, [22.5, 47.5, 72.5, 97.5])
    # 10 to 35, 35 to 60, 60 to 85, 85 to 110 seconds.
    np.testing.assert_allclose(found.y * 25, [100, 300, 25, 25])
    # No part is shorter than what was logged.
    found = charts.rates(np.array([0.0, 10.0, 20.0]), np.array([0.0, 5.0, 5.0]))
    np.testing.assert_allclose(found.y, [0.5, 0])


@pytest.mark.parametrize("seconds", [[], [5.0], [5.0, 5.0]])
def test_no_time_has_no_rate_and_no_point_no_chart(seconds: list[float]) -> None:
    found = charts.rates(np.array(seconds), np.array(seconds))
    assert len(found.x) == len(found.y) == 0
    assert charts.curves([found], "title", "x") == []


@pytest.mark.parametrize(
    ("values", "ticks"),
    [
        ((0.0, 1_500_000.0), {"0", "400k", "800k", "1.2M"}),
        ((-21.0, 21.0), {"−10", "0", "10"}),
        ((0.0006, 0.0002), {"0.0002", "0.0004", "0.0006"}),
    ],
)
def test_numbers_are_short(values: tuple[float, ...], ticks: set[str]) -> None:
    assert ticks <= set(_ticks(_axes(_curves([_line(*values)]))))


def test_what_hardly_changes_looks_so() -> None:
    low, high = _axes(_curves([_line(0.0006, 0.00059999)])).get_ylim()
    assert high - low == pytest.approx(0.02 * 0.0006, rel=0.01)
    assert low < 0.00059999 < 0.0006 < high
    assert _axes(_curves([_line(1.0, 2.0)])).get_ylim() == pytest.approx((0.95, 2.05))


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
    axes = _axes(_curves([_line(*values)], log="y"))
    assert (axes.get_xscale(), axes.get_yscale()) == ("linear", "log")
    low, high = axes.get_ylim()
    assert low < min(values) < max(values) < high
    assert _ticks(axes) == ticks
    assert not any(label.get_text() for label in axes.get_yticklabels(minor=True))
    axes = _axes(_curves([Trace(np.asarray(values), np.asarray(values))], log="x"))
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "linear")


def test_between_what_is_counted_is_no_tick() -> None:
    def ticks(*values: float) -> list[str]:
        x = np.asarray(values)
        return _ticks(_axes(_curves([Trace(x, x)])), "x")

    assert ticks(1.0, 2.0, np.nan, 3.0) == ["1", "2", "3"]
    assert [text for text in ticks(1.0, 2.0, 2.5) if "." in text]


@pytest.mark.parametrize(
    ("hours", "ticks"),
    [
        (0.0144, ["0:00:00", "0:00:10", "0:00:20", "0:00:30", "0:00:40", "0:00:50"]),
        (0.9, ["0:00", "0:10", "0:20", "0:30", "0:40", "0:50"]),
        (30.0, ["0:00", "6:00", "12:00", "18:00", "24:00", "30:00"]),
    ],
)
def test_hours_are_marked_as_a_clock(hours: float, ticks: list[str]) -> None:
    x = np.asarray([0.0, hours])
    assert _ticks(_axes(_curves([Trace(x, x)], "A run", charts.HOURS)), "x") == ticks


def test_a_clock_has_a_sign_and_thousands_of_hours() -> None:
    assert charts.clock(-900) == "−0:15"
    assert charts.clock(1234 * 3600 + 1800) == "1,234:30"


def _bars(axes: Axes) -> list[Rectangle]:
    return [patch for patch in axes.patches if isinstance(patch, Rectangle)]


def test_every_task_has_a_row_in_order() -> None:
    names = [f"task {i}" for i in range(57)]
    figure = charts.bars(names, [(range(57), 0)], "t", "x")
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
    assert _axes(charts.bars(names, [(lengths, 0)], "t", "x")).get_xscale() == scale


def test_bars_of_several_lines_stand_below_each_other() -> None:
    bars = _bars(_axes(charts.bars(["a", "b"], [([1, np.nan], 0), ([2, 3], 1)], "t", "x")))
    spans = sorted((bar.get_y(), bar.get_y() + bar.get_height()) for bar in bars)
    assert all(end <= begin + 1e-9 for (_, end), (begin, _) in itertools.pairwise(spans))
    assert [spans[0][0], spans[-1][1]] == pytest.approx([-0.4, 1.4])


def test_each_colour_is_a_line_along_lanes_one_between_them_and_dots() -> None:
    segments = [
        Segment(0, 0, 0, 60, 0),
        Segment(1, 0, 1, 40, 2),
        Segment(1, 40, 1, 90, 0),
        Segment(0, 30, 1, 40, 0),
    ]
    axes = _axes(charts.lanes(["a", "b"], segments, "t", "steps"))
    along, between, dots = [line for line in axes.lines if line.get_color() == FIRST]
    for line, x, y in (
        (along, [0, 60, math.nan, 40, 90, math.nan], [0, 0, math.nan, 1, 1, math.nan]),
        (between, [30, 40, math.nan], [0, 1, math.nan]),
        (dots, [40], [1]),
    ):
        np.testing.assert_equal([line.get_xdata(), line.get_ydata()], [x, y])
    assert dots.get_marker() == "o"
    assert along.get_linewidth() > between.get_linewidth()
    assert axes.lines[0].get_color() == list(COLOURS)[2]  # the first colour is above all others
    first, second = (axes.transData.transform((0, lane))[1] for lane in (0, 1))
    assert first > second
    low, high = axes.get_xlim()
    assert (low, high > 90) == (0, True)


@pytest.mark.parametrize("count", [2, 30, 1_000])
def test_many_lanes_are_narrow_and_not_all_are_named(count: int) -> None:
    names = [f"{i:02}" for i in range(count)]
    figure = charts.lanes(names, [Segment(i, 0, i, 9, 0) for i in range(count)], "t", "steps")
    axes = _axes(figure)
    assert figure.get_figheight() <= 11
    assert _ticks(axes) == names[:: 1 if count < 40 else 16]
    places = axes.transData.transform([(0, place) for place in axes.get_yticks()])[:, 1]
    assert (-np.diff(places) / figure.dpi).min() > 9 / 72  # inches, of the text
    assert figure.get_figheight() / count > 0.009


def _some_curves(title: str = "a < b & c") -> Figure:
    x = np.linspace(0, 1_500_000, 400)
    wave = binned(x, np.cos(x / 2e5), band=True)
    traces = [wave, wave._replace(colour=3, style="o--")]
    (figure,) = charts.curves(traces, title, "actor steps", reference=0.5)
    return figure


def _some_bars(title: str = "Bars") -> Figure:
    names = [f"atari:game_{i}" for i in range(5)]
    first, second = [1, 20, -3, np.nan, 5_000], [1, 2, 3, 4, 5]
    return charts.bars(names, [(first, 0), (second, 1)], title, "%", reference=100)


@pytest.mark.parametrize(("make", "colours"), [(_some_curves, (0, 3)), (_some_bars, (0, 1))])
def test_a_figure_has_the_colours_of_its_page_and_refers_to_itself_alone(
    make: "type[Figure]", colours: tuple[int, ...]
) -> None:
    text = charts.svg(make())
    assert "currentColor" in text
    found = set(re.findall(r"var\(--line-\d\)", text))
    assert found == {f"var(--line-{i})" for i in colours}
    assert not re.findall(r"[:\"] ?#[0-9a-f]{6}", text)  # of its own it has none
    assert not [part for part in ("<style", "font-family", "://", "xmlns") if part in text]
    root = ElementTree.fromstring(text)
    ids = [element.attrib["id"] for element in root.iter() if "id" in element.attrib]
    referred = re.findall(r'url\(#(\w+)\)|href="#(\w+)"', text)
    assert len(set(ids)) == len(ids)
    assert {a or b for a, b in referred} == set(ids) != set()


def test_figures_of_one_page_share_no_id() -> None:
    first, second = (
        set(re.findall(r'id="(\w+)"', charts.svg(_some_curves(title)))) for title in ("a", "b")
    )
    assert first
    assert not first & second


def test_a_figure_can_be_read_without_being_seen() -> None:
    root = ElementTree.fromstring(charts.svg(_some_bars('every "task" & more')))
    assert root.attrib["aria-label"] == 'every "task" & more'
    assert root.attrib["role"] == "img"
    assert not {"width", "height"} & set(root.attrib)  # the page decides
    words = {element.text for element in root.iter("text")}
    # The longest bar is 5,000.
    assert {*(f"atari:game_{i}" for i in range(5)), 'every "task" & more', "%", "1k"} <= words


def test_curves_are_drawn_where_they_are() -> None:
    """A line through two corners of the axes, to a tenth of a unit; a single point is a dot."""
    root = ElementTree.fromstring(charts.svg(_curves([_line(0.0, 1.0)])))
    (path,) = [
        element.attrib["d"]
        for element in root.iter("path")
        if "--line-0" in element.attrib.get("style", "")
    ]
    (x0, y0), (x1, y1) = ([float(n) for n in point.split()] for point in re.split("[ML]", path)[1:])
    assert x0 < x1
    assert y0 > y1  # downwards is larger
    assert len(path) < 40
    root = ElementTree.fromstring(charts.svg(_curves([_line(5.0)])))
    assert len([e for e in root.iter("use") if "line-0" in e.attrib["style"]]) == 1


def _pixels(legend: Legend, title: str = "title") -> np.ndarray:
    """Of a figure's file, `[height, width, 3]`."""
    png = charts.png(_curves([_line(*range(50))], title), legend)
    return np.asarray(image.imread(io.BytesIO(png)))[..., :3]


def _height_of_line(pixels: np.ndarray) -> int:
    """Rows with the first colour, of which the legend's patch is a part."""
    wanted = [int(FIRST[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    return int(np.isclose(pixels, wanted, atol=0.01).all(axis=2).any(axis=1).sum())


def test_a_legend_takes_nothing_of_the_figure() -> None:
    alone = _pixels([("one", 0)])
    heights = []
    for label in ("{}", "a long name of a run, r2d2_feedforward {}"):
        several = _pixels([(label.format(i), i) for i in range(10)])
        assert several.shape[1] == alone.shape[1]
        assert _height_of_line(several) > 0.9 * _height_of_line(alone)
        assert (several[:, -3:] == _WHITE).all()  # nothing is cut off at the right
        heights.append(len(several))
    assert len(alone) < heights[0] < heights[1]  # short labels stand side by side


@pytest.mark.parametrize("text", [r"$\frac{1}$", "$x$ and $y$", r"\$5 or $", "$", "a_1^{2}"])
def test_no_text_is_mathematics(text: str) -> None:
    assert charts.svg(_curves([_line(1.0, 2.0)], text, text)).count(f">{text}</text>") == 2
    assert f">{text}</text>" in charts.svg(charts.bars([text], [([1.0], 0)], "title", "x"))
    assert len(_pixels([(text, 0), ("another", 1)], text)) > len(_pixels([("one", 0)]))
