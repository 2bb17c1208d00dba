"""The BUILD files are what bazel/generate.py writes for the tree as it is."""

import ast
from pathlib import Path
from typing import Any

import pytest

from bazel.generate import build_files

ROOT = Path(__file__).resolve().parents[1]


def _targets(text: str) -> dict[str, tuple[str, dict[str, Any]]]:
    """The py_library and py_test rules of a BUILD file, which is read as the Python it also is."""
    calls = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call)]
    arguments: list[dict[str, Any]] = [
        {str(word.arg): ast.literal_eval(word.value) for word in call.keywords} for call in calls
    ]
    return {
        named["name"]: (call.func.id, named)
        for call, named in zip(calls, arguments, strict=True)
        if isinstance(call.func, ast.Name) and "name" in named
    }


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    files = {
        "replay/__init__.py": '"""Replay."""',
        "replay/structures.py": "import numpy\nNAME = 'data/scores.csv'",
        "replay/data/scores.csv": "game,score",
        "replay/data/unread.csv": "",
        "agents/actor.py": "from replay.structures import Batch\nimport agents.contract",
        "agents/contract.py": "",
        "tests/conftest.py": "",
        "tests/agents/test_actor.py": "import pytest\nfrom agents import actor",
        "tests/agents/test_contract.py": "import agents.contract",
        "tests/agents/test_long.py": "import pytest\n\n@pytest.mark.slow\ndef test() -> None: ...",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


@pytest.fixture(scope="module")
def generated() -> dict[Path, str]:
    """The BUILD files as they should be."""
    return build_files(ROOT)


@pytest.mark.repository
def test_build_files_are_up_to_date(generated: dict[Path, str]) -> None:
    for path, text in generated.items():
        assert (ROOT / path).is_file(), f"{path} is missing: run `make build-files`."
        assert (ROOT / path).read_text() == text, f"{path} is out of date: run `make build-files`."


@pytest.mark.repository
def test_no_build_file_outlives_its_modules(generated: dict[Path, str]) -> None:
    rooms = {path.parts[0] for path in generated}
    found = {path.relative_to(ROOT) for room in rooms for path in (ROOT / room).rglob("BUILD")}
    stubs = {path for path in found if Path("bazel/debian") in path.parents}
    assert found - stubs == set(generated)


def test_every_module_has_one_target_with_its_imports_as_deps(tree: Path) -> None:
    files = build_files(tree)
    agents = _targets(files[Path("agents/BUILD")])
    assert set(agents) == {"actor", "contract"}
    rule, actor = agents["actor"]
    assert rule == "py_library"
    assert actor["srcs"] == ["actor.py"]
    assert actor["deps"] == ["//replay:structures", ":contract"]
    assert "deps" not in agents["contract"][1]
    replay = _targets(files[Path("replay/BUILD")])
    assert replay["structures"][1]["deps"] == [":__init__"]


def test_a_module_has_the_data_files_that_it_names(tree: Path) -> None:
    replay = _targets(build_files(tree)[Path("replay/BUILD")])
    assert replay["structures"][1]["data"] == ["data/scores.csv"]
    assert "data" not in replay["__init__"][1]


def test_the_tests_of_a_folder_are_one_target_and_those_with_marks_another(tree: Path) -> None:
    targets = _targets(build_files(tree)[Path("tests/agents/BUILD")])
    assert {name: rule for name, (rule, _) in targets.items()} == {
        "agents": "py_test",
        "test_long": "py_test",
    }
    fast = targets["agents"][1]
    assert fast["srcs"] == ["test_actor.py", "test_contract.py"]
    assert fast["deps"] == ["//agents:actor", "//agents:contract", "//tests:conftest"]
    assert "tags" not in fast
    assert targets["test_long"][1]["srcs"] == ["test_long.py"]
    assert targets["test_long"][1]["tags"] == ["slow"]


def test_what_tests_share_is_a_library_for_tests_only(tree: Path) -> None:
    rule, conftest = _targets(build_files(tree)[Path("tests/BUILD")])["conftest"]
    assert rule == "py_library"
    assert conftest["testonly"] is True


@pytest.mark.repository
def test_every_test_module_is_the_source_of_one_target(generated: dict[Path, str]) -> None:
    found = [
        path.parent / source
        for path, text in generated.items()
        for rule, arguments in _targets(text).values()
        if rule == "py_test"
        for source in arguments["srcs"]
    ]
    tests = ROOT / "tests"
    assert sorted(found) == sorted(path.relative_to(ROOT) for path in tests.rglob("test_*.py"))


def test_visibility_is_the_import_arrow(tree: Path) -> None:
    files = build_files(tree)
    assert "//agents:__subpackages__" in files[Path("replay/BUILD")]
    assert "//environments" not in files[Path("replay/BUILD")]
    assert "//replay:__subpackages__" not in files[Path("agents/BUILD")]
    assert "//r2d2:__subpackages__" in files[Path("agents/BUILD")]
