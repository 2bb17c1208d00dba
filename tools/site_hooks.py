"""What mkdocs needs to make a site of pages that are written for a viewer of the repository.

Pages of the root stay where they are. A source that is linked gets a page of its own, as
does a notebook.
"""

import json
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
_FLAG = re.compile(r"(?<=[\s>])--[\w.]+(?=[^<>]*</code>)")
_NOTEBOOK = '%s\n\n<a href="%s" download>This page as a notebook.</a>\n'
_SOURCE = "---\nsearch: {exclude: true}\n---\n# %s\n\n~~~~python\n%s~~~~\n"


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the root's pages, and a page for each notebook and each source that a page links to."""
    for name, uri in ROOT_PAGES.items():
        files.append(File.generated(config, uri, abs_src_path=str(ROOT / name)))
    for notebook in (ROOT / "docs").glob("*.ipynb"):
        text = _NOTEBOOK % (_cells(notebook), notebook.name)
        files.append(File.generated(config, f"{notebook.stem}.md", content=text))
    pages = [(page, _TARGET.findall(page.content_string)) for page in files.documentation_pages()]
    for name in sorted({_named(page, target) for page, targets in pages for target in targets}):
        if (ROOT / name).is_file() and (uri := _uri(name)).startswith("source/"):
            text = _SOURCE % (name, (ROOT / name).read_text())
            files.append(File.generated(config, uri, content=text))
            files.src_uris[uri].inclusion = InclusionLevel.NOT_IN_NAV
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Turns links that hold in the repository into links that hold in the site."""

    def moved(found: re.Match[str]) -> str:
        name = _named(page.file, found[1])
        uri = posixpath.relpath(_uri(name), posixpath.dirname(page.file.src_uri) or ".")
        return uri if (ROOT / name).is_file() else found[1]  # code, or a dead link, told by mkdocs

    return _TARGET.sub(moved, markdown)


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Keeps a flag's hyphens and its name in one line."""
    return _FLAG.sub(r'<span class="flag">\g<0></span>', html)


def _cells(notebook: pathlib.Path) -> str:
    """A notebook's cells as Markdown, without what they have printed."""
    parts = []
    for cell in json.loads(notebook.read_text())["cells"]:
        text = "".join(cell["source"])
        parts.append(f"```python\n{text}\n```" if cell["cell_type"] == "code" else text)
    return "\n\n".join(parts)


def _named(file: File, target: str) -> str:
    """The file that a page's link names, relative to the repository's root."""
    folder = "." if file.src_uri in ROOT_PAGES.values() else "docs"
    return posixpath.normpath(posixpath.join(folder, file.src_uri, "..", target))


def _uri(name: str) -> str:
    """Where the site has a file of the repository."""
    if name.startswith("docs/"):
        return name.removeprefix("docs/").replace(".ipynb", ".md")
    return ROOT_PAGES.get(name, f"source/{name}.md")
