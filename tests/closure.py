"""How much of this project some modules import, all together.

    python -m tests.closure r2d2.agent  # R2D2 as a library
    python -m tests.closure launch.train r2d2.entry r2d2.builder environments.atari  # a run

Every import counts, also one within a function. What a run imports by name, its agent's entry and
builder and its kind of environment, has to be named; `--without=tensor_ops` leaves a room out.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

from tests import rooms

ROOT = Path(__file__).resolve().parents[1]


def lines(modules: Sequence[str], without: str = "") -> dict[Path, int]:
    """The lines of each file of this project that importing these modules imports."""
    return {
        path: len((ROOT / path).read_text().splitlines())
        for path in rooms.closure(ROOT, modules)
        if path.parts[0] != without
    }


if __name__ == "__main__":
    left_out = [arg.partition("=")[2] for arg in sys.argv if arg.startswith("--without=")]
    counted = lines([arg for arg in sys.argv[1:] if not arg.startswith("--")], *left_out)
    print(f"{sum(counted.values()):,} lines in {len(counted)} files")
