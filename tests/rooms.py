"""The rooms of the tree, the direction in which they may import, and what they do import."""

import ast
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from recurrent_replay import COMMANDS, ROOMS

_LAYERS = (*ROOMS, *COMMANDS)

# Each room with those it may import: from `agents` on, all that stand before it.
MAY_IMPORT: dict[str, frozenset[str]] = {
    "courier": frozenset(),
    "tensor_ops": frozenset(),
    "environments": frozenset({"courier"}),
    "replay": frozenset({"courier"}),
    **{room: frozenset(_LAYERS[:i]) for i, room in enumerate(_LAYERS) if i >= 4},
    "bazel": frozenset(),
    "tools": frozenset(),
    "tests": frozenset({*_LAYERS, "bazel"}),
}

_LATER = "command_line.later"  # imports what its first argument names


def modules(root: Path) -> list[Path]:
    """Every Python file of every room, relative to the root, in order."""
    return sorted(
        path.relative_to(root) for room in MAY_IMPORT for path in (root / room).rglob("*.py")
    )


def imports(root: Path, module: Path) -> set[Path]:
    """The files of the rooms that a module imports, at its top or inside a function."""
    return {path for path in _imported(root, module) if path.parts[0] in MAY_IMPORT}


def _imported(root: Path, module: Path) -> set[Path]:
    tree = ast.parse((root / module).read_text(), filename=str(module))
    found = (_file_of(root, name) for name in _imported_names(tree, module))
    return {path for path in found if path is not None}


def closure(root: Path, names: Sequence[str]) -> set[Path]:
    """The files that importing these modules imports, the packages around each within."""
    found: set[Path] = set()
    left = {path for path in (_file_of(root, name) for name in names) if path is not None}
    while left:
        path = left.pop()
        around = {root / parent / "__init__.py" for parent in path.parents[:-1]}
        packages = {package.relative_to(root) for package in around if package.is_file()}
        found.add(path)
        if path.parent != Path():  # `recurrent_replay` imports nothing until it is called
            left |= (_imported(root, path) | packages) - found
    return found


def violations(root: Path) -> list[str]:
    """One sentence for each import that goes against the arrow."""
    return [
        f"{module} imports {imported}, but {module.parts[0]} may import only "
        f"{', '.join(sorted(MAY_IMPORT[module.parts[0]])) or 'itself'}."
        for module in modules(root)
        for imported in sorted(imports(root, module))
        if imported.parts[0] not in MAY_IMPORT[module.parts[0]] | {module.parts[0]}
    ]


def circles(root: Path) -> list[str]:
    """One sentence for each folder that imports another that imports it, however indirectly."""
    below: dict[Path, set[Path]] = defaultdict(set)
    for module in modules(root):
        if not module.name.startswith("test_"):
            below[module.parent] |= {path.parent for path in imports(root, module)}
    for folder in below:
        below[folder].discard(folder)
    return [
        f"{folder} imports {other}, which imports it."
        for folder in sorted(below)
        for other in sorted(below[folder])
        if folder in _reached(other, below)
    ]


def _reached(folder: Path, below: Mapping[Path, set[Path]]) -> set[Path]:
    found: set[Path] = set()
    left = [folder]
    while left:
        for other in below.get(left.pop(), set()) - found:
            found.add(other)
            left.append(other)
    return found


def _imported_names(tree: ast.AST, module: Path) -> Iterator[str]:
    """Dotted names, whose last part may be a value: `from a import b` yields `a.b`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            package = module.parts[: len(module.parts) - node.level] if node.level else ()
            base = [*package, *([node.module] if node.module else [])]
            yield from (".".join([*base, alias.name]) for alias in node.names)
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith(_LATER):
            yield from (str(part.value) for part in node.args[:1] if isinstance(part, ast.Constant))


def _file_of(root: Path, name: str) -> Path | None:
    """The file that holds a dotted name, or None where the name is not the tree's own."""
    parts = name.split(".")
    for end in range(len(parts), 0, -1):
        stem = Path(*parts[:end])
        for path in (stem.with_suffix(".py"), stem / "__init__.py"):
            if (root / path).is_file():
                return path
    return None
