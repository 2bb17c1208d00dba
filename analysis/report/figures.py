"""The report's figures, of the size that a phone shows, in colours that a page can replace."""

import contextlib
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import (
    EngFormatter,
    FuncFormatter,
    LogLocator,
    MaxNLocator,
    MultipleLocator,
    NullFormatter,
    PercentFormatter,
)

from analysis.literal import LITERAL
from analysis.report.curves import Curve

INK = "#22262b"  # text and axes
COLOURS = (
    "#1f6fb4",
    "#cf4b3a",
    "#2e8b57",
    "#b8740a",
    "#7b5ea7",
    "#00878f",
    "#b0479a",
    "#5f7d0e",
    "#8c5a3c",
    "#6b7280",
)
"""Of the lines, dark enough for white paper."""

_WIDTH, _HEIGHT = 4.4, 2.9  # inches of 72 units: text of 9 units can be read at a phone's width
ROW, FRAME = 0.19, 1.0  # inches of a bar with its name, and of what surrounds all bars
_LEAST_RANGE = 0.02  # of a vertical axis, in units of its greatest value
_TICKS = {1.5: (1, 2, 5), 3.0: (1, 3)}  # in each decade, by how many there are; else one
HOURS = "hours"  # an axis of this name is marked as a clock is
_MINUTES = (1, 2, 5, 10, 15, 30, 60, 120, 180, 360, 720, 1440, 2880, 7200)
_CLOCK = (1, 2, 5, 10, 15, 30, *(60 * minutes for minutes in _MINUTES))  # seconds between marks
_WITH_PREFIX = EngFormatter(sep="")
_STYLE = LITERAL | {
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlelocation": "left",
    "axes.titlesize": 9.5,
    "font.size": 9,
    "grid.alpha": 0.15,
    "grid.color": INK,
    "lines.linewidth": 1.3,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
}


class Trace(NamedTuple):
    """One curve of a figure."""

    curve: Curve
    colour: int  # an index in `COLOURS`
    style: str = "-"  # as matplotlib writes it: "o-" joins dots
    band: bool = False  # whether to shade between `low` and `high`


class Bars(NamedTuple):
    """One line's bars."""

    lengths: Sequence[float]  # NaN for none
    colour: int


class Steps(NamedTuple):
    """The outline of a histogram."""

    heights: np.ndarray  # [bins]
    edges: np.ndarray  # [bins + 1]
    colour: int
    style: str = "-"


def curves(
    traces: Sequence[Trace],
    title: str,
    x_label: str,
    *,
    reference: float | None = None,
    log: str = "",
) -> Figure:
    """Curves against what was counted or measured.

    Args:
      traces: what is drawn, in this order; NaN interrupts a line.
      title: of the figure.
      x_label: what x is.
      reference: where to draw a dotted horizontal.
      log: the axes that are logarithmic, of "xy".
    """
    with frame(title, x_label) as (figure, axes):
        for (x, mean, low, high), colour, style, band in traces:
            if band:
                axes.fill_between(x, low, high, color=COLOURS[colour], alpha=0.2, lw=0)
            seen = style if len(x) > 1 else "o"  # no line can be drawn through one point
            axes.plot(x, mean, seen, color=COLOURS[colour], ms=3)
        if reference is not None:
            axes.axhline(reference, color=INK, lw=0.8, ls=":")
        if all(_is_whole(trace.curve.x) for trace in traces):
            axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))
        for name in log:
            _make_logarithmic(axes, name)
        if "y" not in log:
            _widen(axes)
        axes.xaxis.set_major_formatter(FuncFormatter(short))
        axes.yaxis.set_major_formatter(FuncFormatter(short))
        if x_label == HOURS:
            _mark_as_a_clock(axes)
    return figure


def bars(
    names: Sequence[str],
    groups: Sequence[Bars],
    title: str,
    x_label: str,
    *,
    reference: float | None = None,
) -> Figure:
    """Horizontal bars, a row for each name and in it one for each group.

    Args:
      names: of the rows, from above.
      groups: what is drawn, each with as many lengths as there are names.
      title: of the figure.
      x_label: what a length is.
      reference: where to draw a dotted vertical.
    """
    lengths = np.asarray([group.lengths for group in groups], float)  # [groups, names]
    height = FRAME + ROW * len(names) * max(1.0, 0.6 * len(groups))
    with frame(title, x_label, height=height) as (figure, axes):
        thickness = 0.8 / len(groups)
        for i, group in enumerate(groups):
            places = np.arange(len(names)) - 0.4 + thickness * (i + 0.5)
            axes.barh(places, lengths[i], thickness, color=COLOURS[group.colour])
        axes.axvline(0, color=INK, lw=0.8)
        if reference is not None:
            axes.axvline(reference, color=INK, lw=0.8, ls=":")
        if _spread(lengths) > 100:
            decade = 10.0 ** np.floor(np.log10(_scale(lengths)))
            axes.set_xscale("symlog", linthresh=decade, linscale=1)
        axes.xaxis.set_major_formatter(FuncFormatter(short))
        axes.set_yticks(np.arange(len(names)), names)
        axes.set_ylim(len(names) - 0.4, -0.6)
        axes.grid(visible=False, axis="y")
        axes.tick_params(axis="y", length=0)
    return figure


def histogram(steps: Sequence[Steps], title: str, x_label: str, y_label: str) -> Figure:
    """Outlines of histograms over bins of equal ratios."""
    with frame(title, x_label, y_label) as (figure, axes):
        for heights, edges, colour, style in steps:
            axes.stairs(heights, edges, color=COLOURS[colour], ls=style, lw=1.3)
        axes.set_xscale("log")
        axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5), numticks=6))
        axes.xaxis.set_major_formatter(FuncFormatter(short))
        axes.xaxis.set_minor_formatter(NullFormatter())
        axes.yaxis.set_major_formatter(PercentFormatter(1, symbol=" %"))
    return figure


@contextlib.contextmanager
def frame(
    title: str, x_label: str, y_label: str = "", *, height: float = _HEIGHT
) -> Iterator[tuple[Figure, Axes]]:
    """An empty figure in the report's style, of the width that all have."""
    with matplotlib.rc_context(_STYLE):
        figure = Figure(figsize=(_WIDTH, height), layout="constrained")
        axes = figure.subplots()
        axes.set_title(title)
        axes.set_xlabel(x_label)
        axes.set_ylabel(y_label)
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_locator(MaxNLocator(5))
        axes.grid(visible=True)
        axes.set_axisbelow(True)
        yield figure, axes


def _widen(axes: Axes) -> None:
    """Lets what hardly changes look so: else its ticks would differ in their last digits only."""
    low, high = axes.get_ylim()
    least = _LEAST_RANGE * max(abs(low), abs(high))
    if high - low < least:
        axes.set_ylim((low + high - least) / 2, (low + high + least) / 2)


def _mark_as_a_clock(axes: Axes) -> None:
    """Marks hours at whole minutes, or seconds: 1:30 and not 1.5."""
    low, high = axes.get_xlim()
    between = next((seconds for seconds in _CLOCK if (high - low) * 3600 / seconds <= 6), None)
    if between is not None:
        axes.xaxis.set_major_locator(MultipleLocator(between / 3600))
    with_seconds = between is not None and between < 60
    axes.xaxis.set_major_formatter(
        FuncFormatter(lambda hours, _: clock(round(3600 * hours), with_seconds=with_seconds))
    )


def clock(seconds: int, *, with_seconds: bool = False) -> str:
    """Hours and minutes, 1:30 for 5,400; with seconds 1:30:00."""
    minutes, rest = divmod(abs(seconds), 60)
    text = f"{minutes // 60:,}:{minutes % 60:02}" + f":{rest:02}" * with_seconds
    return f"−{text}" if seconds < 0 else text


def _make_logarithmic(axes: Axes, name: str) -> None:
    """Makes the axis of a name logarithmic, with ticks that can be told from each other."""
    axes.set(**{f"{name}scale": "log"})
    axis = axes.xaxis if name == "x" else axes.yaxis
    low, high = axis.get_view_interval()
    decades = np.log10(high / low)
    if decades < 1:  # there might be no tick
        middle, half = np.sqrt(low * high), np.sqrt(10)
        axes.set(**{f"{name}lim": (middle / half, middle * half)})
    subs = next((subs for most, subs in _TICKS.items() if decades < most), (1,))
    axis.set_major_locator(LogLocator(subs=subs, numticks=6))
    axis.set_minor_formatter(NullFormatter())


def _is_whole(x: np.ndarray) -> bool:
    """Whether all is counted: then no tick is between two whole numbers."""
    return bool(np.all(np.isnan(x) | (x == np.round(x))))


def short(value: float, _: int | None) -> str:
    """1.5M for 1,500,000; what is smaller than a thousand as it is."""
    text = f"{value:.4g}" if abs(value) < 1_000 else _WITH_PREFIX(value)
    return text.replace("-", "−")


def _spread(lengths: np.ndarray) -> float:
    """The longest bar in units of a middling one."""
    return float(np.nanmax(np.abs(lengths), initial=0.0)) / _scale(lengths)


def _scale(lengths: np.ndarray) -> float:
    sizes = np.abs(lengths[np.isfinite(lengths) & (lengths != 0)])
    return float(np.median(sizes)) if len(sizes) else 1.0
