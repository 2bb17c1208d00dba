"""Compiles loops for vectors of a chosen size: LLVM splits those that the processor lacks."""

import contextlib
from collections.abc import Iterator

import pytest

from tensor_ops import vector_code
from tensor_ops.llvm import ir
from tensor_ops.vector_code import Byte, Code, Float, Half

_array = Code.array


@contextlib.contextmanager
def lanes(number: int, *, tiles: bool = False) -> Iterator[None]:
    """Compiles as on a processor with vectors of so many lanes, 0 for none, and maybe tiles."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(vector_code, "lanes", lambda: number)
        patch.setattr(vector_code, "has_tiles", lambda: tiles)
        patch.setattr(Code, "array", _spoilt_array)
        yield


def _spoilt_array(code: Code, size: int, kind: ir.Type = Float) -> ir.Value:
    """Fills the array and its surroundings with NaN: fresh memory is often zero by chance."""
    around = 2**13
    num_bytes = 2 * around + size * {Float: 4, Half: 2, Byte: 1}[kind]
    found = _array(code, num_bytes, Byte)
    with code.loop(num_bytes // code.lanes * code.lanes, step=code.lanes) as i:
        code.store_bytes(code.bytes(255), found, i)
    return code.beyond(found, around, "uint8")
