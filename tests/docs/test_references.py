"""What the pages point at is there: links, files, modules and names."""

import ast
import pathlib
import re
from collections.abc import Sequence

import pytest

from tests.docs.pages import ROOT

pytestmark = pytest.mark.repository

PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")])
ROOMS = {path.name for path in ROOT.iterdir() if (path / "__init__.py").exists()}


@pytest.fixture(params=PAGES, ids=lambda path: path.stem)
def page(request: pytest.FixtureRequest) -> pathlib.Path:
    found: pathlib.Path = request.param
    return found


def _quoted(page: pathlib.Path) -> list[str]:
    return re.findall(r"`([\w./]+)`", page.read_text())


def test_an_actors_steps_have_one_name() -> None:
    """That of their column, in pages, in flags' help and in what a report shows."""
    files = [*PAGES, *(path for room in ROOMS for path in (ROOT / room).glob("**/*.py"))]
    assert not [str(path) for path in files if re.search("agent.steps?", path.read_text(), re.I)]


def test_links_lead_to_files(page: pathlib.Path) -> None:
    targets = re.findall(r"\]\(([^)#\s]+)", page.read_text())
    missing = [t for t in targets if "://" not in t and not (page.parent / t).exists()]
    assert not missing


def test_named_files_exist(page: pathlib.Path) -> None:
    """Those below one of the project's folders."""
    named = [path for path in _quoted(page) if path.partition("/")[0] in ROOMS and "/" in path]
    assert not [path for path in named if not (ROOT / path).exists()]


def test_named_functions_and_classes_exist(page: pathlib.Path) -> None:
    missing = [name for name in _quoted(page) if not _exists(name)]
    assert not missing


def _exists(name: str) -> bool:
    """Whether a dotted name of the project's is one; others are. Nothing is imported."""
    room, *rest = name.split(".")
    if room not in ROOMS or not rest or "/" in name or name.endswith((".json", ".jsonl")):
        return True
    path = ROOT / room
    while rest and ((path / rest[0]).is_dir() or (path / f"{rest[0]}.py").exists()):
        path = path / rest.pop(0)
    file = path.with_suffix(".py")
    return not rest or (file.exists() and _defines(ast.parse(file.read_text()), rest))


def _defines(scope: ast.AST, names: Sequence[str]) -> bool:
    """Whether a module or a class defines the first name, and that the second, and so on."""
    if not names:
        return True
    for node in ast.iter_child_nodes(scope):
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        found = {getattr(target, "id", None) for target in targets}
        found |= {getattr(node, "name", None)}
        if isinstance(node, ast.ImportFrom):
            found |= {alias.asname or alias.name for alias in node.names}
        if names[0] in found:
            return _defines(node, names[1:])
    return False
