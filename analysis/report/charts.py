"""A figure as the report has it: a part of the page, and a file beside it."""

import io
import math
import re
from collections.abc import Sequence
from typing import NamedTuple

from matplotlib.figure import Figure
from matplotlib.patches import Patch

from analysis.literal import literal
from analysis.report import figures, svg
from analysis.report.figures import COLOURS, Trace

_PNG_DOTS = 150  # per inch
_HANDLE, _LETTER, _LEGEND_ROW = 0.6, 0.065, 0.18  # inches of a file's legend

Legend = Sequence[tuple[str, int]]  # what each line is, and its colour


class Chart(NamedTuple):
    """A figure twice."""

    name: str  # of the file, without .png
    svg: str  # an element of the page
    png: bytes


@literal
def of_figure(figure: Figure, title: str, legend: Legend) -> Chart:
    """Draws a figure; the file has a legend of its own where there are several lines.

    Args:
      figure: what to draw.
      title: its own on the page; the file's name follows from it.
      legend: of the page.
    """
    name = identifier(title)
    _freeze(figure)
    element = svg.inline(figure, name, title)
    if len(legend) > 1:
        _add(figure, legend)
    file = io.BytesIO()
    figure.savefig(
        file, format="png", dpi=_PNG_DOTS, facecolor="white", pil_kwargs={"compress_level": 1}
    )
    return Chart(name, element, file.getvalue())


def of_curves(
    traces: Sequence[Trace],
    title: str,
    x_label: str,
    legend: Legend,
    *,
    reference: float | None = None,
    log: str = "",
) -> list[Chart]:
    """The chart of some curves, as `figures.curves` has it; none where none of them has a point."""
    drawn = [trace for trace in traces if len(trace.curve.x)]
    if not drawn:
        return []
    figure = figures.curves(drawn, title, x_label, reference=reference, log=log)
    return [of_figure(figure, title, legend)]


def identifier(title: str) -> str:
    """A title as a word for file names and links."""
    return "-".join(re.findall("[a-z0-9]+", title.lower()))


def _add(figure: Figure, legend: Legend) -> None:
    """Puts a legend below a figure, which becomes higher by as much."""
    longest = max(len(label) for label, _ in legend)
    columns = max(1, int(figure.get_figwidth() / (_HANDLE + _LETTER * longest)))
    rows = math.ceil(len(legend) / columns)
    figure.set_figheight(figure.get_figheight() + _LEGEND_ROW * rows)
    figure.set_layout_engine("constrained")
    figure.legend(
        handles=[Patch(color=COLOURS[colour], label=label) for label, colour in legend],
        loc="outside lower left",
        ncols=columns,
        frameon=False,
        fontsize=8,
    )


def _freeze(figure: Figure) -> None:
    """Lays a figure out: else matplotlib would do it again whenever it draws."""
    engine = figure.get_layout_engine()
    assert engine is not None
    engine.execute(figure)
    figure.set_layout_engine("none")
