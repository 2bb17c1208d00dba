"""Writes the BUILD files from the tree: a py_library for each folder, py_tests for its tests.

The deps are the folders that its modules import, so the files cannot drift from the code. Bazel
knows no circles: no folder imports one that imports it. The visibility of each room is the import
arrow. `make build-files` writes them; a test compares.
"""

import ast
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path

from bazel.rooms import MAY_IMPORT, imports, modules

# Test modules with the same of these pytest marks are a target, and the marks its tags, which
# .bazelrc filters out. Those without any are one too: each imports TensorFlow anew, for longer than
# most test modules take.
MARKS = ("launchpad", "repository", "slow")

_WIDTH = 110  # of a list that has one line
_HEADER = "# Written by `make build-files` from the imports; do not edit.\n"


def build_files(root: Path) -> dict[Path, str]:
    """The text of the BUILD file of every folder that holds modules."""
    folders: dict[Path, list[Path]] = defaultdict(list)
    for module in modules(root):
        folders[module.parent].append(module)
    return {
        folder / "BUILD": _build_file(root, folder, members) for folder, members in folders.items()
    }


def _build_file(root: Path, folder: Path, members: Sequence[Path]) -> str:
    tests = [module for module in members if _is_test(module)]
    parts = [_HEADER]
    if tests:
        parts.append('load("//bazel:py_test.bzl", "py_test")\n')
    parts.append(_call("package", {"default_visibility": [f"//bazel:{_users(folder.parts[0])}"]}))
    if folder == Path("bazel"):
        parts.append('exports_files(["pytest_main.py"])\n')
        parts.extend(_package_group(room) for room in MAY_IMPORT)
    if library := [module for module in members if not _is_test(module)]:
        parts.append(_library(root, folder, library))
    by_marks: dict[tuple[str, ...], list[Path]] = defaultdict(list)
    for module in tests:
        by_marks[_marks(root / module)].append(module)
    parts.extend(_test(root, marks, found) for marks, found in sorted(by_marks.items()))
    return "\n".join(parts)


def _users(room: str) -> str:
    return f"may_import_{room}"


def _package_group(room: str) -> str:
    importers = [other for other, below in MAY_IMPORT.items() if room in below]
    packages = [f"//{other}/..." for other in sorted((room, *importers))]
    return _call("package_group", {"name": _users(room), "packages": packages})


def _library(root: Path, folder: Path, members: Sequence[Path]) -> str:
    data = sorted(path.parent.name for path in (root / folder).glob("*/*.csv"))
    arguments: dict[str, Argument] = {
        "name": folder.name,
        "testonly": folder.parts[0] == "tests",
        "srcs": Glob(["*.py"], ["test_*.py"] if folder.parts[0] == "tests" else []),
        "data": Glob([f"{name}/*.csv" for name in dict.fromkeys(data)]),
        "deps": _dependencies(root, folder, members),
    }
    return _call("py_library", arguments)


def _test(root: Path, marks: Sequence[str], members: Sequence[Path]) -> str:
    names = [module.name for module in members]
    marked = sorted({path.name for path in (root / members[0].parent).glob("test_*.py")} - {*names})
    arguments: dict[str, Argument] = {
        "name": "_".join(["test", *marks]),
        "srcs": names if marks else Glob(["test_*.py"], marked),
        "tags": list(marks),
        "deps": _dependencies(root, None, members),
    }
    return _call("py_test", arguments)


def _dependencies(root: Path, own: Path | None, members: Iterable[Path]) -> list[str]:
    """Labels of the folders that modules import; a test's conftests are imported too."""
    found = {path.parent for module in members for path in imports(root, module)}
    for module in members:
        if _is_test(module):
            found |= {f for f in module.parents if (root / f / "conftest.py").is_file()}
    return sorted(f"//{folder.as_posix()}" for folder in found if folder != own)


def _is_test(module: Path) -> bool:
    return module.parts[0] == "tests" and module.name.startswith("test_")


def _marks(path: Path) -> tuple[str, ...]:
    nodes = ast.walk(ast.parse(path.read_text()))
    named = {ast.unparse(node) for node in nodes if isinstance(node, ast.Attribute)}
    return tuple(mark for mark in MARKS if f"pytest.mark.{mark}" in named)


class Glob:
    """Files of a folder, as Bazel finds them itself."""

    def __init__(self, include: Sequence[str], exclude: Sequence[str] = ()) -> None:
        self._include = list(include)
        self._exclude = list(exclude)

    def __bool__(self) -> bool:
        return bool(self._include)

    def __str__(self) -> str:
        exclude = f", exclude = {_value(self._exclude)}" if self._exclude else ""
        return f"glob({_value(self._include)}{exclude})"


Argument = str | bool | list[str] | Glob


def _call(rule: str, arguments: dict[str, Argument]) -> str:
    """One rule; arguments that are empty or false are left out."""
    given = {key: _value(value) for key, value in arguments.items() if value}
    if len(given) == 1:
        return f"{rule}({' = '.join(*given.items())})\n"
    lines = [f"    {key} = {value}," for key, value in given.items()]
    return "\n".join([f"{rule}(", *lines, ")", ""])


def _value(value: Argument) -> str:
    if isinstance(value, list):
        line = ", ".join(f'"{item}"' for item in value)
        if len(line) <= _WIDTH:
            return f"[{line}]"
        return "\n".join(["[", *(f'        "{item}",' for item in value), "    ]"])
    return str(value) if isinstance(value, bool | Glob) else f'"{value}"'


def main() -> None:
    """Writes every BUILD file of the work tree that this module stands in."""
    root = Path(__file__).resolve().parents[1]
    for path, text in build_files(root).items():
        (root / path).write_text(text)


if __name__ == "__main__":
    main()
