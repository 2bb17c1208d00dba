"""What is sent: msgpack, and arrays in an extension of it.

Numbers, words, bytes, None, lists, maps and arrays come as they were sent; a tuple as a list, one
of numpy's numbers as Python's. Nothing that is received is ever executed.

An array is its bytes, then a message of its type and shape, then that message's length in two
bytes: so its bytes begin where memory is aligned.
"""

from typing import Any

import msgpack
import numpy as np

_ARRAY = 1  # number of the extension
_KINDS = "biufcSU?"  # of numpy's types: plain numbers and words


def pack(value: Any) -> bytes:
    """A message.

    Raises:
      TypeError: the value, or a part of it, is not plain.
    """
    packed: bytes = msgpack.packb(value, default=_plain)
    return packed


def unpack(message: bytes) -> Any:
    """What was packed. Arrays can only be read.

    Raises:
      ValueError: nobody has packed this.
    """
    try:
        return msgpack.unpackb(message, ext_hook=_array, strict_map_key=False)
    except Exception as error:  # of msgpack's own kinds, and numpy's
        raise ValueError(f"{len(message)} bytes are no message of plain data: {error}") from error


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic) and value.dtype.kind in _KINDS:
        return value.item()
    if isinstance(value, np.ndarray) and value.dtype.kind in _KINDS:
        head = msgpack.packb((value.dtype.str, value.shape))
        parts = (value.tobytes(), head, len(head).to_bytes(2, "little"))
        return msgpack.ExtType(_ARRAY, b"".join(parts))
    what = f"{type(value).__name__}: {value!r:.80}"
    raise TypeError(f"A call takes plain data and arrays, got {what}")


def _array(number: int, data: bytes | memoryview) -> np.ndarray:
    if number != _ARRAY:
        raise ValueError(f"there is no extension {number}")
    data = memoryview(data)
    end = len(data) - 2
    begin = end - int.from_bytes(data[end:], "little")
    name, shape = msgpack.unpackb(data[begin:end])
    kind = np.dtype(name)
    if kind.kind not in _KINDS:
        raise ValueError(f"{kind} is no type of plain numbers")
    return np.frombuffer(data[:begin], kind).reshape(shape)
