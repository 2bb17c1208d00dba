"""Draws figures: panels of lines, each with its title, labels and legend."""

import hashlib
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
from matplotlib.axes import Axes


class Line(NamedTuple):
    """One line of a panel."""

    x: Any  # [points]
    y: Any  # [points]
    label: str | None = None  # in the legend
    band: tuple[Any, Any] | None = None  # [points] each: what is shaded around it
    margin: Any = None  # [points] or [2, points]: how far error bars reach to either side
    style: Mapping[str, Any] = {}  # of matplotlib's, such as `color`


class Panel(NamedTuple):
    """One part of a figure."""

    lines: Sequence[Line]
    words: dict[str, Any]  # of `Axes.set`: `title`, `xlabel`, `xticks` with `xticklabels`
    legend: Mapping[str, Any] | None = None  # of `Axes.legend`, where there is one
    marks: Mapping[float, str] = {}  # words at vertical lines


def draw(
    panels: Sequence[Panel],
    path: pathlib.Path,
    size: tuple[float, float],
    *,
    columns: int | None = None,
    dpi: int = 110,
    drawn_of: Any = None,
    **subplots: Any,
) -> None:
    """Draws panels row by row, all in one row where no number of columns is given.

    The last row may be shorter.

    The image carries the fingerprint of `drawn_of`; `subplots` are arguments of `plt.subplots`.
    """
    columns = columns or len(panels)
    figure, axes = plt.subplots(
        -(-len(panels) // columns),
        columns,
        figsize=size,
        squeeze=False,
        layout="constrained",
        **subplots,
    )
    for axis in axes.flat[len(panels) :]:
        axis.set_visible(False)
    for axis, panel in zip(axes.flat, panels, strict=False):
        _fill(axis, panel)
    for axis, panel in zip(axes.flat, panels, strict=False):  # limits, once all is drawn
        axis.set(**panel.words)
        if "sharey" in subplots:
            axis.label_outer()
    path.parent.mkdir(parents=True, exist_ok=True)
    metadata = {} if drawn_of is None else {"Description": fingerprint(drawn_of)}
    figure.savefig(path, dpi=dpi, metadata=metadata)
    plt.close(figure)


def _fill(axis: Axes, panel: Panel) -> None:
    for line in panel.lines:
        if line.margin is not None:
            bars = {"marker": "o", "markersize": 4, "capsize": 2, **line.style}
            axis.errorbar(line.x, line.y, line.margin, label=line.label, **bars)
            continue
        (drawn,) = axis.plot(line.x, line.y, label=line.label, **line.style)
        if line.band is not None:
            axis.fill_between(line.x, *line.band, color=drawn.get_color(), alpha=0.2, linewidth=0)
    for x, text in panel.marks.items():
        axis.axvline(x, color="#636363", linewidth=0.8, linestyle=":")
        axis.annotate(
            text,
            (x, 1.0),
            (3, 0),
            xycoords=axis.get_xaxis_transform(),
            textcoords="offset points",
            rotation=90,
            va="top",
            fontsize=8,
            color="#636363",
        )
    axis.grid(alpha=0.3)
    if panel.legend is not None and axis.get_legend_handles_labels()[0]:
        axis.legend(**{"frameon": False, **panel.legend})


def fingerprint(data: Any) -> str:
    """A digest of the data that an image was drawn from; an image carries it as `Description`."""
    return hashlib.sha256(repr(data).encode()).hexdigest()
