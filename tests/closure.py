"""How much of this project some modules import, all together.

    python -m tests.closure r2d2.agent
    python -m tests.closure launch.train launch.starting r2d2.agent   # what a run of R2D2 imports

Every import counts, also one within a function; `--without=tensor_ops` leaves a room out.
"""

import ast
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def _file(module: str) -> Path | None:
    path = ROOT / module.replace(".", "/")
    found = (path.with_suffix(".py"), path / "__init__.py")
    return next((file for file in found if file.is_file()), None)


def _imported(file: Path) -> set[str]:
    names = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return names


def closure(modules: Sequence[str], without: str = "") -> dict[str, int]:
    """The lines of each module of this project that importing these imports."""
    found: dict[str, int] = {}
    left = list(modules)
    while left:
        name = left.pop()
        parts = name.split(".")
        left += {".".join(parts[:i]) for i in range(1, len(parts))} - found.keys()
        file = _file(name)
        if file is None or name in found or (without and parts[0] == without):
            continue
        found[name] = len(file.read_text().splitlines())
        left += _imported(file) - found.keys()
    return found


if __name__ == "__main__":
    rooms = [arg.partition("=")[2] for arg in sys.argv if arg.startswith("--without=")]
    lines = closure([arg for arg in sys.argv[1:] if not arg.startswith("--")], *rooms)
    print(f"{sum(lines.values()):,} lines in {len(lines)} files")
