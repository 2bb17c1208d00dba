"""A figure of lanes side by side, with lines that lead from one to another."""

import math
from collections.abc import Sequence
from typing import NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from analysis.report import figures
from analysis.report.figures import COLOURS, FRAME, ROW

_HIGHEST = 9.0  # inches of all lanes: where there are many they are narrow
_NAME = 0.14  # inches that a name takes
_MARGIN = 1.02  # of the axis, in units of what is on it
_POINTS = 72  # of an inch


class Span(NamedTuple):
    """A part of a lane."""

    lane: int  # from above
    begin: float
    end: float
    colour: int  # an index in `COLOURS`


class Link(NamedTuple):
    """A line from one lane to another."""

    from_lane: int
    from_x: float
    to_lane: int
    to_x: float
    colour: int


def figure(
    names: Sequence[str], spans: Sequence[Span], links: Sequence[Link], title: str, x_label: str
) -> Figure:
    """Draws lanes; of many only some have room for their names.

    Args:
      names: of the lanes, from above.
      spans: parts of lanes.
      links: what leads from one to another; where it arrives is a dot.
      title: of the figure.
      x_label: what is along the lanes.
    """
    row = min(ROW, _HIGHEST / len(names))
    with figures.frame(title, x_label, height=FRAME + row * len(names)) as (drawn, axes):
        colours = {span.colour for span in spans} | {link.colour for link in links}
        for colour in sorted(colours, reverse=True):
            mine = [span for span in spans if span.colour == colour]
            led = [link for link in links if link.colour == colour]
            _draw(axes, mine, led, COLOURS[colour], row * _POINTS)
        each = math.ceil(_NAME / row)
        axes.set_yticks(range(0, len(names), each), names[::each])
        furthest = max((*(span.end for span in spans), *(link.to_x for link in links)), default=0)
        axes.set_xlim(0, _MARGIN * furthest or 1)
        axes.set_ylim(len(names) - 0.4, -0.6)
        axes.grid(visible=False, axis="y")
        axes.tick_params(axis="y", length=0)
        axes.xaxis.set_major_formatter(FuncFormatter(figures.short))
    return drawn


def _draw(
    axes: Axes, spans: Sequence[Span], links: Sequence[Link], ink: str, points: float
) -> None:
    """What has one colour, in as few paths as there can be."""
    x, y = _joined([(span.begin, span.end, span.lane, span.lane) for span in spans])
    axes.plot(x, y, color=ink, lw=min(3.5, 0.4 * points), solid_capstyle="butt")
    x, y = _joined([(link.from_x, link.to_x, link.from_lane, link.to_lane) for link in links])
    axes.plot(x, y, color=ink, lw=min(0.9, 0.4 * points))
    x, y = [link.to_x for link in links], [link.to_lane for link in links]
    axes.plot(x, y, "o", color=ink, ms=min(5.0, 0.7 * points))


def _joined(lines: Sequence[tuple[float, float, float, float]]) -> tuple[list[float], list[float]]:
    """Separate lines as one that is interrupted."""
    x = [value for begin, end, _, _ in lines for value in (begin, end, math.nan)]
    y = [value for _, _, begin, end in lines for value in (begin, end, math.nan)]
    return x, y
