"""The parts of an HTML page: text goes in as it is, markup comes out."""

import html
import math
import urllib.parse
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from analysis.report import style
from analysis.report.charts import Chart, Legend, identifier
from analysis.report.figures import clock

MANY = 8  # of what is shown one by one
FEW = 3  # columns of a table that a phone shows side by side


class Section(NamedTuple):
    """A part of the page with a heading."""

    title: str
    body: str  # markup
    charts: Sequence[Chart] = ()  # all that the body shows


def number(value: float | None, digits: int = 4) -> str:
    """A number as it is read, a dash for none."""
    if value is None or not math.isfinite(value):
        return "–"
    if abs(value) >= 1_000 or float(value).is_integer():
        return f"{value:,.0f}".replace("-", "−")
    return f"{value:.{digits}g}".replace("-", "−")


def duration(seconds: float) -> str:
    """Hours and minutes, a dash for none."""
    if not math.isfinite(seconds):
        return number(None)
    return clock(int(seconds))


def paragraph(text: str) -> str:
    """A paragraph of plain text."""
    return f"<p>{html.escape(text)}</p>\n"


def heading(text: str) -> str:
    """A heading within a section."""
    return f"<h3>{html.escape(text)}</h3>\n"


def key(legend: Legend) -> str:
    """What the colours mean; nothing where there is one."""
    if len(legend) < 2:
        return ""
    items = "".join(
        f'<li><span class="line" style="background: var(--line-{colour})"></span>'
        f"{html.escape(label)}</li>"
        for label, colour in legend
    )
    return f'<ul class="key">{items}</ul>\n'


def grid(charts: Iterable[Chart]) -> str:
    """Charts side by side, as many as fit."""
    return _figures(charts, "grid")


def pairs(charts: Iterable[Chart]) -> str:
    """Charts of which every two belong side by side."""
    return _figures(charts, "grid pairs")


def _figures(charts: Iterable[Chart], layout: str) -> str:
    figures = "".join(f"<figure>{chart.svg}</figure>\n" for chart in charts)
    return f'<div class="{layout}">\n{figures}</div>\n' if figures else ""


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table whose first column names its rows.

    Where the page is narrow, a row of many columns becomes a list of them, each with its name.
    """
    names = [html.escape(name) for name in header]
    many = len(names) > FEW
    attributes = [f' data-name="{name}"' * many for name in names[1:]]
    head = "".join(f'<th scope="col">{name}</th>' for name in names)
    body = ""
    for row in rows:
        first, *others = (html.escape(cell) for cell in row)
        pairs = zip(attributes, others, strict=True)
        cells = "".join(f"<td{attribute}>{cell}</td>" for attribute, cell in pairs)
        body += f'<tr><th scope="row">{first}</th>{cells}</tr>\n'
    kind = ' class="many"' * many
    return (
        f'<div class="scroll"><table{kind}>\n<thead><tr>{head}</tr></thead>\n'
        f"<tbody>{body}</tbody>\n</table></div>\n"
    )


def of_each(count: int, what: str, body: str) -> str:
    """What would be long where there is much of it, and is then shown when it is asked for.

    Args:
      count: of the things that are shown.
      what: they are, for example `tasks`.
      body: markup.
    """
    if count <= MANY:
        return body
    summary = html.escape(f"All {count} {what}")
    return f"<details><summary>{summary}</summary>\n{body}</details>\n"


def links(places: Iterable[tuple[str, str]]) -> str:
    """A list of texts, each of which leads to a file whose path is relative to the page's."""
    items = "".join(
        f'<li><a href="{html.escape(urllib.parse.quote(path))}">{html.escape(text)}</a></li>\n'
        for text, path in places
    )
    return f"<ul>\n{items}</ul>\n"


def commands(lines: Iterable[str]) -> str:
    """What was typed."""
    return f"<pre><code>{html.escape(chr(10).join(lines))}</code></pre>\n"


def document(title: str, sections: Sequence[Section]) -> str:
    """The whole page."""
    links = "".join(
        f'<a href="#{identifier(section.title)}">{html.escape(section.title)}</a> '
        for section in sections
    )
    body = "".join(
        f'<section id="{identifier(section.title)}">\n<h2>{html.escape(section.title)}</h2>\n'
        f"{section.body}</section>\n"
        for section in sections
    )
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{html.escape(title)}</title>\n<style>\n{style.SHEET}</style>\n</head>\n<body>\n"
        f"<header><h1>{html.escape(title)}</h1>\n<nav>{links}</nav></header>\n"
        f"<main>\n{body}</main>\n</body>\n</html>\n"
    )
