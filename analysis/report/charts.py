"""Charts of few points: drawn in the colours of a page for it, and for a file beside it."""

import html
import io
import math
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import (
    EngFormatter,
    FuncFormatter,
    LogLocator,
    MaxNLocator,
    MultipleLocator,
    NullFormatter,
)

INK = "#22262b"  # text and axes
COLOURS = {  # of lines: dark enough for white paper -> bright enough for a dark page
    "#1f6fb4": "#6cb2f5",
    "#cf4b3a": "#ff8a7a",
    "#2e8b57": "#5fcf93",
    "#b8740a": "#f0b34a",
    "#7b5ea7": "#b79df0",
    "#00878f": "#45cfd6",
    "#b0479a": "#ee8fd6",
    "#5f7d0e": "#b5d04f",
    "#8c5a3c": "#cfa184",
    "#6b7280": "#a9b1bd",
}
_COLOURS = tuple(COLOURS)
BINS = 100  # about one for each three pixels of a figure
HOURS = "hours"  # an axis of this name is marked as a clock is

_WIDTH, _HEIGHT = 4.4, 2.9  # inches of 72 units: text of 9 units can be read at a phone's width
_ROW, _FRAME = 0.19, 1.0  # inches of a row with its name, and of what surrounds all rows
_ROWS = 9.0  # inches of all lanes: where there are many they are narrow
_NAME = 0.14  # inches that a row's name takes
_PNG_DOTS = 150  # per inch
_HANDLE, _LETTER, _LEGEND_ROW = 0.6, 0.065, 0.18  # inches of a file's legend
_LEAST_RANGE = 0.02  # of a vertical axis, in units of its greatest value
_TICKS = {1.5: (1, 2, 5), 3.0: (1, 3)}  # in each decade, by how many there are; else one
_MINUTES = (1, 2, 5, 10, 15, 30, 60, 120, 180, 360, 720, 1440, 2880, 7200)
_CLOCK = (1, 2, 5, 10, 15, 30, *(60 * minutes for minutes in _MINUTES))  # seconds between marks

_styled = matplotlib.rc_context(
    {
        "text.parse_math": False,  # a folder may be named `$\\frac{1}$`
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
)

Legend = Sequence[tuple[str, int]]  # each line's label and colour


class Trace(NamedTuple):
    """A line of a chart, or its dots. Arrays are `[points]`; NaN interrupts a line."""

    x: np.ndarray
    y: np.ndarray
    colour: int = 0  # an index in `COLOURS`
    style: str = "-"  # as matplotlib writes it: "o-" joins dots
    low: np.ndarray | None = None  # from there ...
    high: np.ndarray | None = None  # ... to here it is shaded


class Segment(NamedTuple):
    """A part of a lane, or a line from one lane to another; lanes are counted from above."""

    from_lane: int
    from_x: float
    to_lane: int
    to_x: float
    colour: int


def binned(
    x: np.ndarray,
    y: np.ndarray,
    *,
    colour: int = 0,
    style: str = "-",
    band: bool = False,
    bins: int = BINS,
    least: int = 1,
) -> Trace:
    """Means over bins of equal width: a chart must not grow with a run's length.

    Args:
      x: `[N]`.
      y: `[N]`, finite.
      colour: of the trace.
      style: likewise.
      band: whether to shade the middle half of each bin's values.
      bins: the most there may be; each should hold `least` values on average.
      least: of few values there are fewer bins.

    Returns:
      A point for each bin that is not empty, at the mean x of its values.
    """
    if not len(x):
        return Trace(np.empty(0), np.empty(0), colour, style)
    places = bin_places(x, int(np.clip(len(x) // least, 1, bins)))
    order = np.argsort(places, kind="stable")
    cuts = np.flatnonzero(np.diff(places[order])) + 1
    xs, ys = np.split(x[order], cuts), np.split(y[order], cuts)
    x, y = (np.asarray([part.mean() for part in parts]) for parts in (xs, ys))
    low, high = np.asarray([np.percentile(part, (25, 75)) for part in ys]).T
    return Trace(x, y, colour, style, low, high) if band else Trace(x, y, colour, style)


def bin_places(x: np.ndarray, bins: int) -> np.ndarray:
    """The bin in which each x is, `[N]`, of so many bins of equal width."""
    edges = np.linspace(x.min(), x.max(), bins + 1)
    return np.clip(np.searchsorted(edges, x, side="right") - 1, 0, bins - 1)


def rates(seconds: np.ndarray, counts: np.ndarray, *, colour: int = 0, bins: int = BINS) -> Trace:
    """The growth of a counter per second, against hours.

    Its values `[N]` at growing `seconds` `[N]` make at most `bins` parts of equal time, and at most
    one for each value after the first; there is a point in the middle of each.
    """
    if len(seconds) < 2 or seconds[-1] <= seconds[0]:
        return Trace(np.empty(0), np.empty(0), colour)
    edges = np.linspace(seconds[0], seconds[-1], min(bins, len(seconds) - 1) + 1)
    rate = np.diff(np.interp(edges, seconds, counts)) / np.diff(edges)
    return Trace((edges[:-1] + edges[1:]) / 2 / 3_600, rate, colour)


@_styled
def curves(
    traces: Sequence[Trace],
    title: str,
    x_label: str,
    *,
    reference: float | None = None,
    log: str = "",
) -> list[Figure]:
    """The figure of some curves, the last one on top; none where none of them has a point.

    A dotted horizontal is at `reference`, and the axes that `log` names, of "xy", are logarithmic.
    """
    drawn = [trace for trace in traces if len(trace.x)]
    if not drawn:
        return []
    figure, axes = _frame(title, x_label)
    for trace in drawn:
        colour = _COLOURS[trace.colour]
        if trace.low is not None and trace.high is not None:
            axes.fill_between(trace.x, trace.low, trace.high, color=colour, alpha=0.2, lw=0)
        seen = trace.style if len(trace.x) > 1 else "o"  # no line can be drawn through one point
        axes.plot(trace.x, trace.y, seen, color=colour, ms=3)
    if reference is not None:
        axes.axhline(reference, color=INK, lw=0.8, ls=":")
    if all(np.all(np.isnan(trace.x) | (trace.x == np.round(trace.x))) for trace in drawn):
        axes.xaxis.set_major_locator(
            MaxNLocator(5, integer=True)
        )  # no tick between what is counted
    for name in log:
        _make_logarithmic(axes, name)
    if "y" not in log:
        _widen(axes)
    axes.yaxis.set_major_formatter(FuncFormatter(short))
    if x_label == HOURS:
        _mark_as_a_clock(axes)
    return [figure]


@_styled
def bars(
    names: Sequence[str],
    groups: Sequence[tuple[Sequence[float], int]],
    title: str,
    x_label: str,
    *,
    reference: float | None = None,
) -> Figure:
    """Horizontal bars: a row for each name, from above, and in it one for each group.

    A group has as many lengths as there are names, NaN for none, and a colour. A dotted vertical is
    at `reference`.
    """
    row = _ROW * max(1.0, 0.6 * len(groups))
    figure, axes = _frame(title, x_label, names=names, row=row)
    thickness = 0.8 / len(groups)
    for i, (lengths, colour) in enumerate(groups):
        places = np.arange(len(names)) - 0.4 + thickness * (i + 0.5)
        axes.barh(places, lengths, thickness, color=_COLOURS[colour])
    axes.axvline(0, color=INK, lw=0.8)
    if reference is not None:
        axes.axvline(reference, color=INK, lw=0.8, ls=":")
    sizes = np.abs(np.asarray([lengths for lengths, _ in groups], float))
    sizes = sizes[np.isfinite(sizes) & (sizes > 0)]
    if len(sizes) and sizes.max() > 100 * np.median(sizes):  # else most could not be seen
        decade = 10.0 ** np.floor(np.log10(np.median(sizes)))
        axes.set_xscale("symlog", linthresh=decade, linscale=1)
        axes.xaxis.set_major_formatter(FuncFormatter(short))
    return figure


@_styled
def lanes(names: Sequence[str], segments: Sequence[Segment], title: str, x_label: str) -> Figure:
    """Lanes side by side, and lines that lead from one to another, where each arrives at a dot.

    Of many names, from above, only some have room.
    """
    row = min(_ROW, _ROWS / len(names))
    figure, axes = _frame(title, x_label, names=names, row=row)
    points = 72 * row
    for colour in sorted({segment.colour for segment in segments}, reverse=True):
        mine = [segment for segment in segments if segment.colour == colour]
        links = [segment for segment in mine if segment.from_lane != segment.to_lane]
        ink = _COLOURS[colour]
        for width, part in ((3.5, [s for s in mine if s.from_lane == s.to_lane]), (0.9, links)):
            # In one path, which is interrupted: there may be thousands.
            x = [x for s in part for x in (s.from_x, s.to_x, math.nan)]
            y = [lane for s in part for lane in (s.from_lane, s.to_lane, math.nan)]
            axes.plot(x, y, color=ink, lw=min(width, 0.4 * points), solid_capstyle="butt")
        x, y = [link.to_x for link in links], [link.to_lane for link in links]
        axes.plot(x, y, "o", color=ink, ms=min(5.0, 0.7 * points))
    furthest = max((segment.to_x for segment in segments), default=0)
    axes.set_xlim(0, 1.02 * furthest or 1)
    return figure


def _frame(
    title: str, x_label: str, *, names: Sequence[str] = (), row: float = 0.0
) -> tuple[Figure, Axes]:
    """An empty figure of the width that all have; where there are names, with a row for each."""
    height = _FRAME + row * len(names) if names else _HEIGHT
    figure = Figure(figsize=(_WIDTH, height), layout="constrained")
    axes = figure.subplots()
    axes.set_title(title)
    axes.set_xlabel(x_label)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(MaxNLocator(5))
    axes.xaxis.set_major_formatter(FuncFormatter(short))
    axes.grid(visible=True)
    axes.set_axisbelow(True)
    if names:
        each = math.ceil(_NAME / row)
        axes.set_yticks(range(0, len(names), each), names[::each])
        axes.set_ylim(len(names) - 0.4, -0.6)
        axes.grid(visible=False, axis="y")
        axes.tick_params(axis="y", length=0)
    return figure, axes


def _widen(axes: Axes) -> None:
    """Widens a vertical axis of nearly equal values: its ticks would differ in the last digits."""
    low, high = axes.get_ylim()
    least = _LEAST_RANGE * max(abs(low), abs(high))
    if high - low < least:
        axes.set_ylim((low + high - least) / 2, (low + high + least) / 2)


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
    axis.set_major_formatter(FuncFormatter(short))
    axis.set_minor_formatter(NullFormatter())


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


def short(value: float, _: int | None = None) -> str:
    """A number as an axis shows it: 1.5M for 1,500,000; one below a thousand as it is."""
    text = f"{value:.4g}" if abs(value) < 1_000 else EngFormatter(sep="")(value)
    return text.replace("-", "−")


def title_of(figure: Figure) -> str:
    """The title that a figure was given."""
    return figure.axes[0].get_title(loc="left")


_LEFT_OUT = re.compile(r"<metadata>.*?</metadata>|<style.*?</style>|<!--.*?-->", re.DOTALL)
_ATTRIBUTE = re.compile(r' (style|d|x|y|width|height|transform|points)="([^"]*)"')
_VARIABLES = {INK: "currentColor"} | {c: f"var(--line-{i})" for i, c in enumerate(COLOURS)}


@_styled
def svg(figure: Figure) -> str:
    """The figure as an `<svg>` element, small and of its page's width.

    Its text stays text, its ink is the page's `currentColor`, its lines have the page's variables
    `--line-0` and on, and nothing in it refers to another document.
    """
    title, file = title_of(figure), io.StringIO()
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": title}):
        figure.savefig(file, format="svg", transparent=True)
    # A style sheet inside the figure would hold for the whole page.
    head, _, body = _LEFT_OUT.sub("", file.getvalue()).partition("<svg")[2].partition(">")
    box = re.findall('viewBox="[^"]*"', head)[0]
    body = re.sub(r'<g id="[^"]*"', "<g", body).replace(" xlink:href=", " href=")
    body = re.sub(r">\s+<", "><", _ATTRIBUTE.sub(_tidied, body)).strip()
    return f'<svg {box} role="img" aria-label="{html.escape(title)}">{body}'


def _tidied(attribute: re.Match[str]) -> str:
    """An attribute in the page's colours and font, and to a tenth of a unit."""
    name, text = attribute.groups()
    if name == "style":
        text = re.sub("#[0-9a-f]{6}", lambda found: _VARIABLES.get(found[0], found[0]), text)
        text = re.sub(r"font-family: [^;]*; ", "", text)
    else:
        text = re.sub(r"-?\d+\.\d+", lambda n: f"{float(n[0]):.1f}".removesuffix(".0"), text)
        text = " ".join(text.split())
    return f' {name}="{text}"'


@_styled
def png(figure: Figure, legend: Legend) -> bytes:
    """The figure as a file; for several lines it grows, and a legend stands below."""
    if len(legend) > 1:
        longest = max(len(label) for label, _ in legend)
        columns = max(1, int(figure.get_figwidth() / (_HANDLE + _LETTER * longest)))
        rows = math.ceil(len(legend) / columns)
        figure.set_figheight(figure.get_figheight() + _LEGEND_ROW * rows)
        figure.legend(
            handles=[Patch(color=_COLOURS[colour], label=label) for label, colour in legend],
            loc="outside lower left",
            ncols=columns,
            frameon=False,
            fontsize=8,
        )
    file, how = io.BytesIO(), dict[str, Any](facecolor="white", pil_kwargs={"compress_level": 1})
    figure.savefig(file, format="png", dpi=_PNG_DOTS, **how)
    return file.getvalue()
