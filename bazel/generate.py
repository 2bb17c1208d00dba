"""Writes the BUILD files from the tree: a py_library for a module, a py_test for a folder of tests.

The deps are the imports that the modules contain, so the files cannot drift from the code, and
the visibility of each room is the import arrow. `make build-files` writes them; a test compares.
One test target serves a folder, since each imports TensorFlow anew, for longer than most test
modules take.
"""

import ast
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from bazel.rooms import MAY_IMPORT, imports, modules

# A test module with one of these pytest marks has a target of its own, and the marks as its tags,
# which .bazelrc filters out.
MARKS = ("launchpad", "repository", "slow")

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
    room = folder.parts[0]
    importers = [other for other, below in MAY_IMPORT.items() if room in below]
    parts = [_HEADER]
    if any(_is_test(module) for module in members):
        parts.append('load("//bazel:py_test.bzl", "py_test")\n')
    visibility = [f"//{other}:__subpackages__" for other in (room, *importers)]
    parts.append(_call("package", {"default_visibility": sorted(visibility)}))
    if folder == Path("bazel"):
        parts.append('exports_files(["pytest_main.py"])\n')
    parts.extend(_library(root, module) for module in members if not _is_test(module))
    marks = {module: _marks(root / module) for module in members if _is_test(module)}
    if fast := [module for module, found in marks.items() if not found]:
        parts.append(_target(root, "py_test", folder.name, fast))
    for module, found in marks.items():
        if found:
            parts.append(_target(root, "py_test", module.stem, [module], tags=found))
    return "\n".join(parts)


def _library(root: Path, module: Path) -> str:
    testonly = module.parts[0] == "tests"
    return _target(root, "py_library", module.stem, [module], testonly=testonly)


def _target(
    root: Path, rule: str, name: str, sources: Sequence[Path], **arguments: bool | list[str]
) -> str:
    data = {path for module in sources for path in _data(root, module)}
    deps = {path for module in sources for path in _dependencies(root, module)} - set(sources)
    return _call(
        rule,
        {
            "name": name,
            "srcs": [module.name for module in sources],
            **arguments,
            "data": sorted(data),
            "deps": sorted(_label(path, sources[0]) for path in deps),
        },
    )


def _dependencies(root: Path, module: Path) -> set[Path]:
    """What a module needs: its imports, its package's `__init__`, and a test its conftests."""
    found = imports(root, module) | {module.with_name("__init__.py")}
    if _is_test(module):
        found |= {folder / "conftest.py" for folder in module.parents}
    return {path for path in found if path != module and (root / path).is_file()}


def _is_test(module: Path) -> bool:
    return module.parts[0] == "tests" and module.name.startswith("test_")


def _label(path: Path, seen_from: Path) -> str:
    package = "" if path.parent == seen_from.parent else f"//{path.parent.as_posix()}"
    return f"{package}:{path.stem}"


def _data(root: Path, module: Path) -> list[str]:
    """The data files that a module reads: it names them by their path from its own folder."""
    folder = (root / module).parent
    files = {path.relative_to(folder).as_posix() for path in folder.rglob("*.csv")}
    if not files:
        return []
    nodes = ast.walk(ast.parse((root / module).read_text()))
    return sorted(files & {node.value for node in nodes if isinstance(node, ast.Constant)})


def _marks(path: Path) -> list[str]:
    nodes = ast.walk(ast.parse(path.read_text()))
    named = {ast.unparse(node) for node in nodes if isinstance(node, ast.Attribute)}
    return [mark for mark in MARKS if f"pytest.mark.{mark}" in named]


def _call(rule: str, arguments: dict[str, str | bool | list[str]]) -> str:
    """One rule in buildifier's layout; arguments that are empty or false are left out."""
    lines = [f"    {key} = {_value(value)}," for key, value in arguments.items() if value]
    return "\n".join([f"{rule}(", *lines, ")", ""])


def _value(value: str | bool | list[str]) -> str:
    if isinstance(value, list) and len(value) > 1:
        return "\n".join(["[", *(f'        "{item}",' for item in value), "    ]"])
    if isinstance(value, list):
        return f'["{value[0]}"]'
    return str(value) if isinstance(value, bool) else f'"{value}"'


def main() -> None:
    """Writes every BUILD file of the work tree that this module stands in."""
    root = Path(__file__).resolve().parents[1]
    for path, text in build_files(root).items():
        (root / path).write_text(text)


if __name__ == "__main__":
    main()
