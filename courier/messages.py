"""Messages: msgpack, with arrays in an extension of it.

Numbers, words, bytes, None, lists, maps and arrays come as they were sent; a tuple as a list, one
of numpy's numbers as Python's. Nothing that is received is ever executed.

A message is the length of what msgpack made, in eight bytes; that; and the bytes of its arrays one
after another, each beginning at a multiple of 16. msgpack knows of an array its type, its shape and
where it begins. So an array is copied once when it is sent, and not at all when it has come.
"""

import math
from typing import Any

import msgpack
import numpy as np

_ALIGNED = 16
_ARRAY = 1  # number of the extension
_LENGTH = 8
_KINDS = "biufcSU?"  # of numpy's types: plain numbers and words


def pack(value: Any) -> bytes:
    """A message.

    Raises:
      TypeError: the value, or a part of it, is not plain.
    """
    arrays: list[bytes | memoryview] = []
    size = 0

    def plain(value: Any) -> Any:
        nonlocal size
        if isinstance(value, np.generic) and value.dtype.kind in _KINDS:
            return value.item()
        if isinstance(value, np.ndarray) and value.dtype.kind in _KINDS:
            known = msgpack.packb((value.dtype.str, value.shape, size))
            arrays.extend((np.ascontiguousarray(value).data, _padding(value.nbytes)))
            size += value.nbytes + len(arrays[-1])
            return msgpack.ExtType(_ARRAY, known)
        what = f"{type(value).__name__}: {value!r:.80}"
        raise TypeError(f"A call takes plain data and arrays, got {what}")

    head = msgpack.packb(value, default=plain)
    length = len(head).to_bytes(_LENGTH, "little")
    return b"".join((length, head, _padding(_LENGTH + len(head)), *arrays))


def unpack(message: bytes) -> Any:
    """The inverse of `pack`. Arrays can only be read.

    Raises:
      ValueError: nobody has packed this.
    """
    end = _LENGTH + int.from_bytes(message[:_LENGTH], "little")
    arrays = memoryview(message)[end + len(_padding(end)) :]

    def array(number: int, known: bytes) -> np.ndarray:
        if number != _ARRAY:
            raise ValueError(f"there is no extension {number}")
        name, shape, begin = msgpack.unpackb(known)
        kind = np.dtype(name)
        if kind.kind not in _KINDS:
            raise ValueError(f"{kind} is no type of plain numbers")
        size = kind.itemsize * math.prod(shape)
        return np.frombuffer(arrays[begin : begin + size], kind).reshape(shape)

    try:
        return msgpack.unpackb(message[_LENGTH:end], ext_hook=array, strict_map_key=False)
    except Exception as error:  # of msgpack's own kinds, and numpy's
        raise ValueError(f"{len(message)} bytes are no message of plain data: {error}") from error


def _padding(size: int) -> bytes:
    """Bytes that fill up to the next aligned place."""
    return bytes(-size % _ALIGNED)
