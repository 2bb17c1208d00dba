"""Loops compiled for vectors of a size of one's own: LLVM splits what a processor does not have."""

import contextlib
from collections.abc import Iterator

import pytest

from agents.networks import (
    direct_code,
    pooling_code,
    recurrence_code,
    sum_code,
    tiled_code,
    vector_code,
    winograd_code,
)

_COMPILED = (
    winograd_code.forwards,
    winograd_code.weights,
    direct_code.weights,
    pooling_code.pool,
    pooling_code.gather,
    recurrence_code.forwards,
    recurrence_code.backwards,
    sum_code.rows,
    tiled_code.weights,
)


@contextlib.contextmanager
def lanes(number: int, *, tiles: bool = False) -> Iterator[None]:
    """As on a processor with such vectors, and perhaps tiles; 0: with none."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(vector_code, "lanes", lambda: number)
        patch.setattr(vector_code, "has_tiles", lambda: tiles)
        _forget()
        yield
    _forget()


def _forget() -> None:
    for compiled in _COMPILED:
        compiled.cache_clear()
