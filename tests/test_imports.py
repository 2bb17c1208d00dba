"""The import arrow: environments and replay below, benchmarks above, and no circle of folders."""

import re
from pathlib import Path

import pytest

from tests.rooms import MAY_IMPORT, circles, closure, imports, modules, violations

ROOT = Path(__file__).resolve().parents[1]


def _write(root: Path, **files: str) -> None:
    """Writes modules named room__module, and an empty `replay/structures.py` for them to import."""
    for name, text in {"replay__structures": "", **files}.items():
        path = root / (name.replace("__", "/") + ".py")
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)


@pytest.mark.repository
def test_no_import_goes_against_the_arrow() -> None:
    assert violations(ROOT) == []


@pytest.mark.repository
def test_no_folder_imports_one_that_imports_it() -> None:
    assert circles(ROOT) == []


@pytest.mark.repository
def test_r2d2_as_a_library_loads_none_of_this_projects_environments() -> None:
    found = closure(ROOT, ["r2d2.agent"])
    assert Path("replay/writer.py") in found
    assert not {Path("environments") / f"{name}.py" for name in ("suites", "dm", "gym")} & found


@pytest.mark.repository
def test_a_run_on_atari_loads_no_library_form_and_no_other_kind_of_environment() -> None:
    found = closure(ROOT, ["launch.train", "r2d2.entry", "r2d2.builder", "environments.atari"])
    others = (
        *("agents/single_process.py", "environments/small_tasks.py", "environments/gym.py"),
        "r2d2/returns.py",
    )
    assert not {path for path in found if str(path).startswith(others)}
    assert {path.parent for path in found if path.parts[0] == "environments"} == {
        Path("environments"),
        Path("environments/copies"),
    }


def test_a_circle_of_three_folders_is_found(tmp_path: Path) -> None:
    _write(
        tmp_path,
        launch__train="import run_folder.settings",
        run_folder__settings="from analysis import report",
        analysis__report="import launch.train",
        replay__writer="import replay.structures",
    )
    assert circles(tmp_path) == [
        "analysis imports launch, which imports it.",
        "launch imports run_folder, which imports it.",
        "run_folder imports analysis, which imports it.",
    ]


@pytest.mark.repository
def test_bazel_is_told_the_same_arrow() -> None:
    def below(room: str) -> set[str]:
        deps = re.search(r"deps = \[(.*)\]", (ROOT / room / "BUILD").read_text())
        assert deps is not None
        found = set(re.findall(r'"//(\w+)"', deps[1]))
        return found.union(*map(below, found))

    rooms = set(MAY_IMPORT) - {"bazel", "tests", "tools"}
    assert {room: below(room) for room in rooms} == {room: MAY_IMPORT[room] for room in rooms}


@pytest.mark.repository
def test_every_python_package_of_the_tree_is_a_room() -> None:
    folders = {
        path.relative_to(ROOT).parts[0]
        for path in ROOT.glob("*/*.py")
        if not path.parent.name.startswith(".")
    }
    assert folders <= set(MAY_IMPORT)


@pytest.mark.parametrize(
    "statement",
    [
        "import replay.structures",
        "import numpy, replay.structures as s",
        "from replay import structures",
        "from replay.structures import Batch",
        "def f() -> None:\n    from replay.structures import Batch",
        "if True:\n    import replay.structures",
        "found = command_line.later('replay.structures').Batch",
    ],
)
def test_every_form_of_import_against_the_arrow_is_found(tmp_path: Path, statement: str) -> None:
    _write(tmp_path, environments__catch=statement)
    (sentence,) = violations(tmp_path)
    assert "environments/catch.py imports replay/structures.py" in sentence


@pytest.mark.parametrize(
    ("module", "statement", "target"),
    [
        ("replay__writer", "import environments.catch", "environments__catch"),
        ("agents__actor", "from r2d2 import agent", "r2d2__agent"),
        ("agents__actor", "from launch import train", "launch__train"),
        ("r2d2__agent", "from launch.train import main", "launch__train"),
        ("launch__train", "from tests import oracle", "tests__oracle"),
    ],
)
def test_each_room_may_not_import_what_stands_above_it(
    tmp_path: Path, module: str, statement: str, target: str
) -> None:
    _write(tmp_path, **{module: statement, target: ""})
    assert len(violations(tmp_path)) == 1


def test_imports_along_the_arrow_and_from_elsewhere_are_fine(tmp_path: Path) -> None:
    _write(
        tmp_path,
        agents__actor="import numpy\nfrom . import contract\nfrom replay.structures import Batch",
        agents__contract="import environments_of_another_package",
    )
    assert violations(tmp_path) == []
    found = imports(tmp_path, Path("agents/actor.py"))
    assert found == {Path("agents/contract.py"), Path("replay/structures.py")}
    assert Path("agents/contract.py") in modules(tmp_path)
