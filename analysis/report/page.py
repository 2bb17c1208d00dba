"""A page that is filled from the top, and written as HTML with its figures as files beside it."""

import contextlib
import html
import math
import pathlib
import re
import urllib.parse
from collections.abc import Iterable, Iterator, Sequence

from matplotlib.figure import Figure

from analysis.report import charts
from analysis.report.charts import COLOURS, Legend
from run_folder import places

MANY = 8  # things of one kind that are shown; more are folded
FEW = 3  # columns of a table that a phone shows side by side

_SHEET = pathlib.Path(__file__).with_name("style.css")
_DARK = "@media (prefers-color-scheme: dark)"
_HEAD = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
"""


class Page:
    """Sections of text, charts and tables. Text is escaped here.

    Args:
      title: of the page.
      folder: where it is written.
      legend: the meaning of colours, unless a chart has a legend of its own.

    Attributes:
      sections: title -> markup, and figures in their places.
      figures: name of the file, without .png -> figure, and the file's legend.
    """

    def __init__(self, title: str, folder: pathlib.Path, legend: Legend = ()) -> None:
        self.folder = folder
        self.legend = legend
        self.sections: dict[str, list[str | Figure]] = {}
        self.figures: dict[str, tuple[Figure, Legend]] = {}
        self._title = title

    def section(self, title: str) -> None:
        """Begins a section; whatever is added next belongs to it."""
        self.sections[title] = []

    def heading(self, text: str) -> None:
        """A heading within a section."""
        self._add(f"<h3>{html.escape(text)}</h3>\n")

    def text(self, text: str) -> None:
        """A paragraph."""
        self._add(f"<p>{html.escape(text)}</p>\n")

    def key(self, legend: Legend | None = None) -> None:
        """The meaning of each colour; nothing where there is a single one."""
        legend = self.legend if legend is None else legend
        items = "".join(
            f'<li><span class="line" style="background: var(--line-{colour})"></span>'
            f"{html.escape(label)}</li>"
            for label, colour in legend
        )
        if len(legend) > 1:
            self._add(f'<ul class="key">{items}</ul>\n')

    def grid(
        self, figures: Iterable[Figure], legend: Legend | None = None, *, pairs: bool = False
    ) -> None:
        """Figures side by side, as many as fit; in pairs where every two belong together."""
        legend = self.legend if legend is None else legend
        shown = list(figures)
        if shown:
            self._add(f'<div class="grid{" pairs" * pairs}">\n')
            for figure in shown:
                self.figures[identifier(charts.title_of(figure))] = figure, legend
                self._add("<figure>", figure, "</figure>\n")
            self._add("</div>\n")

    def table(self, header: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
        """A table whose first column names its rows.

        Where the page is narrow, a row of many columns becomes a list of them, each with its name.
        """
        names = [html.escape(name) for name in header]
        many = len(names) > FEW
        attributes = [f' data-name="{name}"' * many for name in names[1:]]
        head = "".join(f'<th scope="col">{name}</th>' for name in names)
        kind = ' class="many"' * many
        self._add(f'<div class="scroll"><table{kind}>\n<thead><tr>{head}</tr></thead>\n<tbody>')
        for row in rows:
            first, *others = (html.escape(cell) for cell in row)
            cells = zip(attributes, others, strict=True)
            self._add(f'<tr><th scope="row">{first}</th>')
            self._add(*(f"<td{attribute}>{cell}</td>" for attribute, cell in cells), "</tr>\n")
        self._add("</tbody>\n</table></div>\n")

    @contextlib.contextmanager
    def folded(self, count: int, what: str) -> Iterator[None]:
        """Folds the parts that are added meanwhile where they show many things, such as `tasks`."""
        summary = html.escape(f"All {count} {what}")
        self._add(f"<details><summary>{summary}</summary>\n" * (count > MANY))
        yield
        self._add("</details>\n" * (count > MANY))

    def links(self, places: Iterable[tuple[str, str]]) -> None:
        """A list of links: the text and the path of each, relative to the page."""
        items = (
            f'<li><a href="{html.escape(urllib.parse.quote(path))}">{html.escape(text)}</a></li>\n'
            for text, path in places
        )
        self._add("<ul>\n", *items, "</ul>\n")

    def commands(self, lines: Iterable[str]) -> None:
        """Lines of commands."""
        self._add(f"<pre><code>{html.escape(chr(10).join(lines))}</code></pre>\n")

    def _add(self, *parts: str | Figure) -> None:
        next(reversed(self.sections.values())).extend(parts)

    def document(self) -> str:
        """The whole page."""
        title, dark = html.escape(self._title), _variables(COLOURS.values())
        style = f"{_variables(COLOURS)}\n{_DARK} {{ {dark} }}\n{_SHEET.read_text()}"
        nav = "".join(
            f'<a href="#{identifier(name)}">{html.escape(name)}</a> ' for name in self.sections
        )
        body = "".join(
            f'<section id="{identifier(name)}">\n<h2>{html.escape(name)}</h2>\n'
            f"{''.join(p if isinstance(p, str) else charts.svg(p) for p in parts)}</section>\n"
            for name, parts in self.sections.items()
        )
        return (
            f"{_HEAD}<title>{title}</title>\n<style>\n{style}</style>\n</head>\n<body>\n"
            f"<header><h1>{title}</h1>\n<nav>{nav}</nav></header>\n"
            f"<main>\n{body}</main>\n</body>\n</html>\n"
        )

    def write(self) -> pathlib.Path:
        """Writes the page, and each of its figures beside it; returns the page's path.

        Raises:
          SettingsError: one of these files is a link.
          OSError: the folder cannot be written.
        """
        path = self.folder / "index.html"
        files = {self.folder / f"{name}.png": given for name, given in self.figures.items()}
        places.refuse_links(*files, path)
        self.folder.mkdir(parents=True, exist_ok=True)
        path.write_text(self.document())
        for file, (figure, legend) in files.items():
            file.write_bytes(charts.png(figure, legend))
        return path


def _variables(colours: Iterable[str]) -> str:
    """The rule that gives the lines their colours."""
    return f":root {{ {' '.join(f'--line-{i}: {c};' for i, c in enumerate(colours))} }}"


def identifier(title: str) -> str:
    """A title as a word for file names and links."""
    return "-".join(re.findall("[a-z0-9]+", title.lower()))


def number(value: float | None, digits: int = 4) -> str:
    """A number as it is read, a dash for none."""
    if value is None or not math.isfinite(value):
        return "–"
    if abs(value) >= 1_000 or float(value).is_integer():
        return f"{value:,.0f}".replace("-", "−")
    return f"{value:.{digits}g}".replace("-", "−")


def percentage(value: float) -> str:
    """A percentage as it is read, a dash for none."""
    return number(value, digits=3) + (" %" if math.isfinite(value) else "")


def duration(seconds: float) -> str:
    """Hours and minutes, a dash for none."""
    return charts.clock(int(seconds)) if math.isfinite(seconds) else number(None)
