"""A figure as the report has it: a part of the page, and a file beside it."""

import io
import re
from collections.abc import Sequence
from typing import NamedTuple

from matplotlib.figure import Figure
from matplotlib.patches import Patch

from analysis.report import figures, svg
from analysis.report.figures import COLOURS, Trace

_PNG_DOTS = 150  # per inch

Legend = Sequence[tuple[str, int]]  # what each line is, and its colour


class Chart(NamedTuple):
    """A figure twice."""

    name: str  # of the file, without .png
    svg: str  # an element of the page
    png: bytes


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
        figure.set_layout_engine("constrained")
        figure.legend(
            handles=[Patch(color=COLOURS[colour], label=label) for label, colour in legend],
            loc="outside lower left",
            frameon=False,
            fontsize=8,
        )
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
) -> list[Chart]:
    """The chart of some curves; none where none of them has a point."""
    drawn = [trace for trace in traces if len(trace.curve.x)]
    if not drawn:
        return []
    return [of_figure(figures.curves(drawn, title, x_label, reference=reference), title, legend)]


def identifier(title: str) -> str:
    """A title as a word for file names and links."""
    return "-".join(re.findall("[a-z0-9]+", title.lower()))


def _freeze(figure: Figure) -> None:
    """Lays a figure out: else matplotlib would do it again whenever it draws."""
    engine = figure.get_layout_engine()
    assert engine is not None
    engine.execute(figure)
    figure.set_layout_engine("none")
