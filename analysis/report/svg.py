"""A figure as a part of an HTML page: in the page's colours, of its width, and small."""

import io
import re
from collections.abc import Iterator
from xml.etree import ElementTree

import matplotlib
from matplotlib.figure import Figure

from analysis.report.figures import COLOURS, INK

_PAGES = {INK: "currentColor"} | {c: f"var(--line-{i})" for i, c in enumerate(COLOURS)}
_HEX = re.compile(r"#[0-9a-f]{6}")
_FONT = re.compile(r"font-family: [^;]*; ")
_DECIMAL = re.compile(r"-?\d+\.\d+")
_PLACES = ("d", "x", "y", "width", "height", "transform", "points")


def inline(figure: Figure, name: str, title: str) -> str:
    """The figure as an `<svg>` element.

    Its text stays text, its ink is the page's `currentColor`, its lines have the page's variables
    `--line-0` and on, and nothing in it refers to another document.

    Args:
      figure: what to show.
      name: of this figure alone on its page: the element's ids are made from it.
      title: for who cannot see it.
    """
    file = io.StringIO()
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": name}):
        figure.savefig(file, format="svg", transparent=True)
    root = ElementTree.fromstring(file.getvalue())
    _clean(root)
    del root.attrib["width"], root.attrib["height"], root.attrib["version"]
    root.attrib |= {"role": "img", "aria-label": title}
    return ElementTree.tostring(root, encoding="unicode")


def _clean(element: ElementTree.Element) -> None:
    """Changes an element and all below it to what the page needs of them."""
    element.tag = _local(element.tag)
    element.tail = None
    attributes = {_local(name): text for name, text in element.attrib.items()}
    element.attrib = {name: _value(name, text) for name, text in attributes.items()}
    if element.tag in ("svg", "g"):
        element.attrib.pop("id", None)
    if element.tag != "text":
        element.text = None
    element[:] = [part for child in element for part in _kept(child)]


def _kept(child: ElementTree.Element) -> Iterator[ElementTree.Element]:
    # A style sheet inside the figure would hold for the whole page.
    if _local(child.tag) in ("metadata", "style"):
        return
    _clean(child)
    if child.tag in ("g", "defs") and not len(child):
        return
    if child.tag == "g" and not child.attrib:
        yield from child
    else:
        yield child


def _local(name: str) -> str:
    """A name without its namespace: HTML knows SVG's."""
    return name.rpartition("}")[2]


def _value(name: str, text: str) -> str:
    if name == "style":
        text = _HEX.sub(lambda match: _PAGES.get(match[0], match[0]), text)
        return _FONT.sub("", text)  # the page has its own
    if name in _PLACES:
        text = _DECIMAL.sub(lambda match: f"{float(match[0]):.1f}".removesuffix(".0"), text)
        return " ".join(text.split())
    return text
