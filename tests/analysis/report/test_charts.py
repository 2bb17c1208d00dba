"""A figure's file has a legend, for which it becomes larger."""

import io

import numpy as np
import pytest
from matplotlib import image

from analysis.report import charts, figures
from analysis.report.charts import Chart, Legend
from analysis.report.curves import binned
from analysis.report.figures import COLOURS, Bars, Trace

_WHITE = 1.0  # of red, green and blue


def _chart(legend: Legend) -> Chart:
    curve = binned(np.arange(50.0), np.arange(50.0))
    (chart,) = charts.of_curves([Trace(curve, 0)], "title", "x", legend)
    return chart


def _pixels(chart: Chart) -> np.ndarray:
    """`[height, width, 3]`."""
    return np.asarray(image.imread(io.BytesIO(chart.png)))[..., :3]


def _height_of_line(pixels: np.ndarray) -> int:
    """Rows with the first colour, of which the legend's patch is a part."""
    wanted = [int(COLOURS[0][i : i + 2], 16) / 255 for i in (1, 3, 5)]
    return int(np.isclose(pixels, wanted, atol=0.01).all(axis=2).any(axis=1).sum())


@pytest.mark.parametrize("label", ["from {:02}", "a long name of a run, r2d2_feedforward {}"])
def test_a_legend_takes_nothing_of_the_figure(label: str) -> None:
    alone = _pixels(_chart([("one", 0)]))
    legend = [(label.format(i), i) for i in range(10)]
    several = _pixels(_chart(legend))
    assert several.shape[1] == alone.shape[1]
    assert several.shape[0] > alone.shape[0]
    assert _height_of_line(several) > 0.9 * _height_of_line(alone)
    # Nothing is cut off at the right.
    assert (several[:, -3:] == _WHITE).all()


@pytest.mark.parametrize("text", [r"$\frac{1}$", "$x$ and $y$", r"\$5 or $", "$", "a_1^{2}"])
def test_no_text_is_mathematics(text: str) -> None:
    curve = binned(np.arange(50.0), np.arange(50.0))
    legend = [(text, 0), ("another", 1)]
    (chart,) = charts.of_curves([Trace(curve, 0)], text, text, legend)
    assert chart.svg.count(f">{text}</text>") == 2  # the title and what x is
    plain = _pixels(charts.of_curves([Trace(curve, 0)], "title", "x", [("one", 0)])[0])
    assert _pixels(chart).shape[0] > plain.shape[0]  # its legend too was drawn
    bars = figures.bars([text], [Bars([1.0], 0)], "title", "x")
    assert f">{text}</text>" in charts.of_figure(bars, "title", ()).svg


def test_short_labels_stand_side_by_side() -> None:
    short = [(f"{i}", i) for i in range(10)]
    long = [(f"a long name of a run, r2d2_feedforward {i}", i) for i in range(10)]
    assert len(_pixels(_chart(short))) < len(_pixels(_chart(long)))


def test_the_page_has_a_key_of_its_own() -> None:
    legend = [("from 00", 0), ("from 01", 1)]
    assert "from 00" not in _chart(legend).svg


def test_where_no_curve_has_a_point_there_is_no_chart() -> None:
    empty = binned(np.empty(0), np.empty(0))
    assert charts.of_curves([Trace(empty, 0)], "title", "x", [("one", 0)]) == []
