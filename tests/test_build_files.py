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
        {str(word.arg): _read(word.value) for word in call.keywords} for call in calls
    ]
    return {
        named["name"]: (call.func.id, named)
        for call, named in zip(calls, arguments, strict=True)
        if isinstance(call.func, ast.Name) and "name" in named
    }


def _read(value: ast.expr) -> Any:
    """A literal; of a glob the patterns."""
    return ast.unparse(value) if isinstance(value, ast.Call) else ast.literal_eval(value)


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


def test_a_folder_is_a_library_whose_deps_are_the_folders_that_it_imports(tree: Path) -> None:
    agents = _targets(build_files(tree)[Path("agents/BUILD")])
    assert set(agents) == {"agents"}
    rule, arguments = agents["agents"]
    assert rule == "py_library"
    assert arguments["srcs"] == "glob(['*.py'])"
    assert arguments["deps"] == ["//replay"]
    assert "data" not in arguments


def test_a_folder_has_the_data_files_below_it(tree: Path) -> None:
    replay = _targets(build_files(tree)[Path("replay/BUILD")])["replay"][1]
    assert replay["data"] == "glob(['data/*.csv'])"
    assert "deps" not in replay


def test_the_tests_of_a_folder_are_one_target_and_those_with_marks_another(tree: Path) -> None:
    targets = _targets(build_files(tree)[Path("tests/agents/BUILD")])
    assert {name: rule for name, (rule, _) in targets.items()} == {
        "test": "py_test",
        "test_slow": "py_test",
    }
    fast = targets["test"][1]
    assert fast["srcs"] == "glob(['test_*.py'], exclude=['test_long.py'])"
    assert fast["deps"] == ["//agents", "//tests"]
    assert "tags" not in fast
    assert targets["test_slow"][1]["srcs"] == ["test_long.py"]
    assert targets["test_slow"][1]["tags"] == ["slow"]


def test_what_tests_share_is_a_library_for_tests_only(tree: Path) -> None:
    rule, shared = _targets(build_files(tree)[Path("tests/BUILD")])["tests"]
    assert rule == "py_library"
    assert shared["testonly"] is True
    assert shared["srcs"] == "glob(['*.py'], exclude=['test_*.py'])"


@pytest.mark.repository
def test_no_test_module_is_left_out(generated: dict[Path, str]) -> None:
    """A marked one is named twice: by its target, and as no part of the one without marks."""
    for module in (ROOT / "tests").rglob("test_*.py"):
        rules = _targets(generated[module.parent.relative_to(ROOT) / "BUILD"]).values()
        sources = [arguments["srcs"] for rule, arguments in rules if rule == "py_test"]
        globs = [srcs for srcs in sources if "glob(['test_*.py']" in srcs]
        by_name = any(module.name in srcs for srcs in sources if srcs not in globs)
        by_glob = any(f"'{module.name}'" not in srcs for srcs in globs)
        assert by_name != by_glob, module


def test_visibility_is_the_import_arrow(tree: Path) -> None:
    (tree / "bazel").mkdir()
    (tree / "bazel" / "rooms.py").write_text("")
    files = build_files(tree)
    assert 'default_visibility = ["//bazel:may_import_replay"]' in files[Path("replay/BUILD")]
    groups = _targets(files[Path("bazel/BUILD")])
    assert "//agents/..." in groups["may_import_replay"][1]["packages"]
    assert "//environments/..." not in groups["may_import_replay"][1]["packages"]
    assert "//replay/..." not in groups["may_import_agents"][1]["packages"]
    assert "//r2d2/..." in groups["may_import_agents"][1]["packages"]
