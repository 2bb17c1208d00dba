"""The pages name what is there: links, files, modules and names, columns and hyperparameters."""

import ast
import pathlib
import re
from collections.abc import Sequence

import pytest

from agents import fields
from agents.environment_loop import Episode
from benchmarks import hyperparameters
from launch.graph import process
from launch.graph.coordinator import Coordinator
from launch.graph.evaluator_node import summary
from launch.graph.logs import LABELS
from run_folder import catalogue
from run_folder.layout import RunFolder
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
    """Pages, flags' help and reports call them as their column does."""
    files = [*PAGES, *(path for room in ROOMS for path in (ROOT / room).glob("**/*.py"))]
    assert not [str(path) for path in files if re.search("agent.steps?", path.read_text(), re.I)]


def test_links_lead_to_files(page: pathlib.Path) -> None:
    targets = re.findall(r"\]\(([^)#\s]+)", page.read_text())
    missing = [t for t in targets if "://" not in t and not (page.parent / t).exists()]
    assert not missing


def test_named_files_exist(page: pathlib.Path) -> None:
    """Files below one of the project's folders are meant."""
    named = [path for path in _quoted(page) if path.partition("/")[0] in ROOMS and "/" in path]
    assert not [path for path in named if not (ROOT / path).exists()]


def test_named_functions_and_classes_exist(page: pathlib.Path) -> None:
    missing = [name for name in _quoted(page) if not _exists(name)]
    assert not missing


def _exists(name: str) -> bool:
    """Says whether a dotted name of the project's exists; others pass. Nothing is imported."""
    room, *rest = name.split(".")
    if room not in ROOMS or not rest or "/" in name or name.endswith((".json", ".jsonl")):
        return True
    path = ROOT / room
    while rest and ((path / rest[0]).is_dir() or (path / f"{rest[0]}.py").exists()):
        path = path / rest.pop(0)
    file = path.with_suffix(".py")
    return not rest or (file.exists() and _defines(ast.parse(file.read_text()), rest))


def _defines(scope: ast.AST, names: Sequence[str]) -> bool:
    """Says whether a module or class defines the first name, that one the second, and so on."""
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


def test_every_column_that_a_run_logs_is_on_the_page(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "enter", lambda *_: None)
    tasks = ("atari:pong", "catch")
    begun = dict(actor_steps=0, episodes=0, walltime=0.0)
    limits = dict(actor_steps=100)
    node = Coordinator(str(tmp_path), tasks, 1, begun, {"r2d2": (0, 0)}, limits=limits, replays=[])
    node.report_steps([0], 9, [(0, 0, 1.0, 9, 9)], 0)
    node._writing.take_row(node.get_counts())
    node._writing.write_rows()
    headers = [RunFolder(tmp_path).log(label).read_text().split("\n")[0] for label in LABELS]
    of_evaluations = summary(tasks, tasks, [Episode(0, 1.0, 9), Episode(1, -1.0, 9)])
    columns = {*",".join(headers).split(","), *of_evaluations}

    told = set(re.findall(r"`([\w/<>]+)`", (ROOT / "docs" / "runs.md").read_text()))
    assert not {re.sub("/.*", "/<task>", column) for column in columns} - told
    assert {"median_normalised", "environments_lost", "task"} <= columns


def test_the_page_of_hyperparameters_is_as_new_and_has_a_line_for_each() -> None:
    """`python -m benchmarks.hyperparameters docs/hyperparameters.md` makes it so."""
    page = hyperparameters.page()
    assert (ROOT / "docs" / "hyperparameters.md").read_text() == page
    for name, entry in catalogue.AGENTS.items():
        assert f"\n## {name}\n" in page
        for field in fields.declared(type(entry.config)):
            assert f"| `{field}` | " in page
    local = dict(catalogue.AGENTS["r2d2"].local["small"])
    line = next(line for line in page.splitlines() if line.startswith("| `burn_in` | "))
    assert line.split(" | ")[1:7] == ["40", "", "8", "8", "8", str(local["burn_in"])]
