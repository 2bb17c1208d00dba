"""Loops compiled for vectors of a size of one's own: LLVM splits what a processor does not have."""

import contextlib
from collections.abc import Iterator

import pytest

from tensor_ops import vector_code
from tensor_ops.llvm import ir
from tensor_ops.vector_code import Byte, Code, Float, Half

_array = Code.array


@contextlib.contextmanager
def lanes(number: int, *, tiles: bool = False) -> Iterator[None]:
    """As on a processor with such vectors, and perhaps tiles; 0: with none."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(vector_code, "lanes", lambda: number)
        patch.setattr(vector_code, "has_tiles", lambda: tiles)
        patch.setattr(Code, "array", _spoilt_array)
        yield


def _spoilt_array(code: Code, size: int, kind: ir.Type = Float) -> ir.Value:
    """Memory is often clear where nobody has cleared it: here no number is in it, nor around it."""
    around = 2**13
    num_bytes = 2 * around + size * {Float: 4, Half: 2, Byte: 1}[kind]
    found = _array(code, num_bytes, Byte)
    with code.loop(num_bytes // code.lanes * code.lanes, step=code.lanes) as i:
        code.store_bytes(code.bytes(255), found, i)
    return code.beyond(found, around, "uint8")
