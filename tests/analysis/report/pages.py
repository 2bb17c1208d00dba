"""Reads a page as a browser would, and refuses what one would have to mend."""

import dataclasses
import html
import pathlib
from collections.abc import Callable
from html.parser import HTMLParser
from typing import Any, NamedTuple
from unittest import mock

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from analysis.report import charts, page

_VOID = {"meta", "br", "hr", "img", "input", "link"}

Attributes = list[tuple[str, str | None]]


class Line(NamedTuple):
    """A line or dots of a figure."""

    x: np.ndarray
    y: np.ndarray
    colour: int  # after the last one is the page's ink
    style: str  # "o" for dots, with what joins them


@dataclasses.dataclass
class Section:
    """The content below a second-level heading."""

    text: str = ""
    tables: list[list[list[str]]] = dataclasses.field(default_factory=list)  # rows of cells
    figures: list[str] = dataclasses.field(default_factory=list)  # their accessible names
    lines: dict[str, list[Line]] = dataclasses.field(default_factory=dict)  # by figure
    scales: dict[str, str] = dataclasses.field(default_factory=dict)  # of their vertical axes


class Page(HTMLParser):
    """A parsed page.

    Args:
      text: HTML.

    Attributes:
      sections: by heading.
      attributes: all, of all elements.
      ids: of all elements.

    Raises:
      AssertionError: an element is not closed, or closed in the wrong place.
    """

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.sections: dict[str, Section] = {}
        self.attributes: list[tuple[str, str, str]] = []
        self._open: list[str] = []
        self._section = Section()
        assert text.startswith("<!DOCTYPE html>")
        self.feed(text)
        self.close()
        assert not self._open, self._open

    @property
    def ids(self) -> list[str]:
        return [value for _, name, value in self.attributes if name == "id"]

    def handle_starttag(self, tag: str, attrs: Attributes) -> None:
        self._note(tag, attrs)
        if tag not in _VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: Attributes) -> None:
        # HTML itself takes no notice of the slash: only what is drawn may be closed so.
        assert tag in _VOID or "svg" in self._open, tag
        self._note(tag, attrs)

    def handle_endtag(self, tag: str) -> None:
        assert self._open, tag
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if not self._open or self._open[-1] == "style":
            return
        if self._open[-1] == "h2":
            self._section = self.sections[data] = Section()
        self._section.text += data
        if self._open[-1] in ("td", "th"):
            self._section.tables[-1][-1][-1] += data

    def _note(self, tag: str, attrs: Attributes) -> None:
        names = [name for name, _ in attrs]
        assert len(set(names)) == len(names), (tag, names)
        found = {name: value or "" for name, value in attrs}
        self.attributes += [(tag, *item) for item in found.items()]
        if tag == "svg":
            self._section.figures.append(found["aria-label"])
        elif tag == "table":
            self._section.tables.append([])
        elif tag == "tr":
            self._section.tables[-1].append([])
        elif tag in ("td", "th"):
            self._section.tables[-1][-1].append("")


def parsed(made: page.Page) -> Page:
    """A page that is not written, whose figures have names but are not drawn."""

    def named(figure: Figure) -> str:
        return f'<svg aria-label="{html.escape(charts.title_of(figure))}"></svg>'

    with mock.patch.object(charts, "svg", named):
        return Page(made.document())


def sections(made: page.Page) -> dict[str, Section]:
    """The sections of a page that is not written, with what its figures show."""
    found = parsed(made).sections
    for name, parts in made.sections.items():
        for figure in parts:
            if isinstance(figure, Figure):
                (axes,), title = figure.axes, charts.title_of(figure)
                found[name].lines[title] = [_read(line) for line in axes.lines]
                found[name].scales[title] = axes.get_yscale()
    return found


def section(fill: Callable[..., None], of: Any, legend: charts.Legend = ()) -> Section:
    """The one section that a function makes of runs, lines or members."""
    made = page.Page("title", pathlib.Path("folder"), legend)
    fill(made, of)
    (found,) = sections(made).values()
    return found


def _read(line: Line2D) -> Line:
    x, y = (np.asarray(values, float) for values in (line.get_xdata(), line.get_ydata()))
    dots = "o" if line.get_marker() == "o" else ""
    style = str(line.get_linestyle())
    colour = [*charts.COLOURS, charts.INK].index(str(line.get_color()))
    return Line(x, y, colour, dots + (style if style != "None" else ""))
