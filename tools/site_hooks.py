"""What mkdocs needs to make a site of pages that are written for a viewer of the repository.

README.md, CONTRIBUTING.md and CHANGELOG.md stay where they are and become pages. A link to a source
leads to a page that shows the file.
"""

import pathlib
import posixpath
import re

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files, InclusionLevel
from mkdocs.structure.pages import Page

ROOT = pathlib.Path(__file__).parents[1]
# A page of the root -> its address in the site.
ROOT_PAGES = {"README.md": "index.md"} | {n: n for n in ("CHANGELOG.md", "CONTRIBUTING.md")}
_TARGET = re.compile(r"(?<=\]\()(?![a-z]+:|#)([^)#\s]+)")
_SOURCE = "---\nsearch: {exclude: true}\n---\n# %s\n\n~~~~%s\n%s~~~~\n"


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the root's pages, and a page for each source that a page links to."""
    for name, uri in ROOT_PAGES.items():
        files.append(File.generated(config, uri, abs_src_path=str(ROOT / name)))
    pages = files.documentation_pages()
    named = {_named(page, to) for page in pages for to in _TARGET.findall(page.content_string)}
    for name in sorted(named):
        path, uri = ROOT / name, _uri(name)
        if path.is_file() and uri.startswith("source/"):
            text = _SOURCE % (name, path.suffix[1:].replace("py", "python"), path.read_text())
            page = File.generated(config, uri, content=text)
            page.inclusion = InclusionLevel.NOT_IN_NAV
            files.append(page)
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Turns links that hold in the repository into links that hold in the site."""
    return _TARGET.sub(lambda found: _in_the_site(page.file, found[1]), markdown)


def _in_the_site(file: File, target: str) -> str:
    name = _named(file, target)
    if not (ROOT / name).is_file():  # code, or a dead link, of which mkdocs tells
        return target
    return posixpath.relpath(_uri(name), posixpath.dirname(file.src_uri) or ".")


def _named(file: File, target: str) -> str:
    """The file that a page's link names, relative to the repository's root."""
    folder = "." if file.src_uri in ROOT_PAGES.values() else "docs"
    return posixpath.normpath(posixpath.join(folder, file.src_uri, "..", target))


def _uri(name: str) -> str:
    """Where the site has a file of the repository."""
    if name.startswith("docs/"):
        return name.removeprefix("docs/")
    return ROOT_PAGES.get(name, f"source/{name}.md")
