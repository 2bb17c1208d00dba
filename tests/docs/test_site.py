"""The site of the pages: it is built without a warning, loads nothing from elsewhere, shows all."""

import ast
import html
import json
import pathlib
import re
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from tests.docs.pages import ROOT

pytestmark = pytest.mark.repository

DOCS = ROOT / "docs"
ROOMS = [path.parent for path in ROOT.glob("*/__init__.py") if path.parent.name != "tests"]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """The built site. Pages that the navigation leaves out, and dead links, are its warnings."""
    folder = tmp_path_factory.mktemp("site")
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", f"--site-dir={folder}"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stderr
    return folder


def _pages(site: pathlib.Path) -> Iterator[tuple[str, str]]:
    for path in site.rglob("*.html"):
        yield str(path.relative_to(site)), path.read_text()


def test_the_pages_load_nothing_from_a_network(site: pathlib.Path) -> None:
    asset = re.compile(
        r"<(?:script|link|img|iframe|source|video)\b[^>]*?\b(?:src|href)=[\"']?((?:https?:)?//[^\s>]*)"
    )
    assert not [(name, url) for name, text in _pages(site) for url in asset.findall(text)]
    styles = "".join(path.read_text() for path in site.rglob("*.css"))
    assert "url(" in styles
    assert not re.findall(r"""(?:url\(|@import)\s*["']?(?:https?:)?//[^)"']*""", styles)


def test_every_page_is_in_the_site_and_can_be_searched(site: pathlib.Path) -> None:
    found = {name for name, _ in _pages(site)}
    pages = {"index", "CHANGELOG", "CONTRIBUTING"}
    pages |= {str(page.relative_to(DOCS).with_suffix("")) for page in DOCS.rglob("*.md")}
    assert {f"{page}.html" for page in pages} <= found
    index = (site / "search" / "search_index.json").read_text()
    assert "faults.html" in index
    assert "source/r2d2/learner.py" not in index
    assert 'data-md-component="search-query"' in (site / "index.html").read_text()


def test_a_link_to_a_source_leads_to_the_source(site: pathlib.Path) -> None:
    reading = (site / "reading.html").read_text()
    assert 'href="source/r2d2/learner.py.html"' in reading
    sources = list((site / "source").rglob("*.html"))
    assert len(sources) > 25
    for page in sources:
        shown = html.unescape(re.sub("<[^>]*>", "", page.read_text()))
        file = ROOT / page.relative_to(site / "source").with_suffix("")
        assert file.read_text() in shown
    assert 'href="index.html#what-it-is-not"' in (site / "clusters.html").read_text()


def test_a_notebook_is_a_page_and_can_be_downloaded(site: pathlib.Path) -> None:
    page = (site / "first_run.html").read_text()
    shown = html.unescape(re.sub("<[^>]*>", "", page))
    sources = ["".join(cell["source"]) for cell in _cells(DOCS / "first_run.ipynb")]
    assert len(sources) > 5
    assert all(source in shown for source in sources)
    assert 'href="first_run.ipynb"' in page
    assert (site / "first_run.ipynb").is_file()
    assert ".ipynb" not in (site / "scripts.html").read_text()  # it links to the page


def _cells(notebook: pathlib.Path) -> list[dict[str, Any]]:
    """The cells of code."""
    cells = json.loads(notebook.read_text())["cells"]
    return [cell for cell in cells if cell["cell_type"] == "code"]


def test_the_api_reference_has_docstrings_and_no_private_name(site: pathlib.Path) -> None:
    text = (site / "api" / "replay.html").read_text()
    assert 'id="replay.priorities.mixed_priorities"' in text
    assert "in the mask" in html.unescape(re.sub("<[^>]*>", "", text))
    assert not re.findall(r'id="[\w.]+\.(_[a-z]\w+)"', text)


def test_no_list_or_table_is_shown_as_a_paragraph(site: pathlib.Path) -> None:
    """Markdown needs an empty line before them here, which other viewers do without."""
    for name, text in _pages(site):
        assert not re.findall(r"<p>(?:(?!</p>).)*\n(?:[-*] |\| |1\. )", text, re.S), name


def test_words_are_sorted_and_say_where_they_are_defined() -> None:
    _, *entries = re.split(r"^## ", (DOCS / "glossary.md").read_text(), flags=re.M)
    words = [entry.splitlines()[0].lower() for entry in entries]
    assert words == sorted(set(words))
    assert len(words) > 30
    for entry in entries:
        assert re.search(r"\([^()]*(`[\w.]+`|\]\([\w/.#-]+\))", entry), entry


def test_the_gallery_has_every_picture_and_film() -> None:
    shown = re.findall(r"\]\(images/(.+?)\)", (DOCS / "gallery.md").read_text())
    assert sorted(shown) == sorted(path.name for path in (DOCS / "images").iterdir())


def _said() -> Iterator[str]:
    """Every text of the code, with a NUL for each value that is put in."""
    for path in [ROOT / "recurrent_replay.py", *(p for room in ROOMS for p in room.rglob("*.py"))]:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.JoinedStr):
                parts = (getattr(part, "value", "") for part in node.values)
                yield "".join(part if isinstance(part, str) else "\0" for part in parts)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield node.value
    yield " ".join((ROOT / "scripts" / "find_python.sh").read_text().split())


def test_the_messages_that_are_explained_are_the_codes() -> None:
    blocks = re.findall(r"^```text\n(.*?)^```", (DOCS / "faults.md").read_text(), re.M | re.S)
    messages = [line for block in blocks for line in block.splitlines()]
    assert len(messages) > 25
    said = set(_said())
    for message in messages:
        fixed = re.sub("<[^>]*>", "\0", message).strip("\0")  # what differs at an end may be a text
        assert len(fixed) > 12, message
        assert any(fixed in text for text in said), message
