"""Reads a page as a browser would, and refuses what one would have to mend."""

import dataclasses
from html.parser import HTMLParser

_VOID = {"meta", "br", "hr", "img", "input", "link"}

Attributes = list[tuple[str, str | None]]


@dataclasses.dataclass
class Section:
    """What stands below a second-level heading."""

    text: str = ""
    tables: list[list[list[str]]] = dataclasses.field(default_factory=list)  # rows of cells
    figures: list[str] = dataclasses.field(default_factory=list)  # their accessible names


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


def tables(body: str) -> list[list[list[str]]]:
    """The tables of a part of a page: rows of cells."""
    page = Page(f"<!DOCTYPE html><body><h2>Part</h2>{body}</body>")
    return page.sections["Part"].tables
