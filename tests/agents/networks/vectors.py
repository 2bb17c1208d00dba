"""Loops compiled for vectors of a size of one's own: LLVM splits what a processor does not have."""

import contextlib
from collections.abc import Iterator

import pytest

from agents.networks import vector_code


@contextlib.contextmanager
def lanes(number: int, *, tiles: bool = False) -> Iterator[None]:
    """As on a processor with such vectors, and perhaps tiles; 0: with none."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(vector_code, "lanes", lambda: number)
        patch.setattr(vector_code, "has_tiles", lambda: tiles)
        yield
