"""An item's compressed blocks -> its column of a batch, each row written once, where it belongs.

    blocks   [c c 0 1 2 3 n] [. . 4 5 6 7 n] [. . 8 9 . . .]     rows 1 to 9 of one item
    column    0 0 1 2 3 4 5 6 7 8 9 0                            with zeros before and after them

A block is decompressed into memory that stays in the processor's cache; from there its rows go to
the time-major batch. So a batch is written once, and nothing is read that no row shows.
"""

from typing import NamedTuple

import numpy as np
import tensorflow as tf

from replay.blocks import decompress
from replay.layout import BlockLayout

_ALIGNMENT = 64  # bytes, without which TensorFlow copies an array to have it


class Columns(NamedTuple):
    """The rows of B items that a batch shows, counted as in the items' blocks, `[B]` each."""

    begin: tf.Tensor  # the batch's first row, which may be none of the item's
    first: tf.Tensor  # the first row shown
    last: tf.Tensor  # the last one


def decoded(
    strings: tf.Tensor,
    shape: tuple[int, ...],
    dtype: np.dtype,
    columns: Columns,
    blocks: BlockLayout,
    num_rows: int,
) -> tf.Tensor:
    """The rows of one array of an observation, `[num_rows, B, *shape]`, zero where none is shown.

    Args:
      strings: `[B, M]`, arrays of blocks as `replay.blocks.compressed` makes them.
      shape: of one row.
      dtype: of the array.
      columns: which rows.
      blocks: how the stream was cut.
      num_rows: of the batch, from `columns.begin` on.

    Raises:
      ValueError, RuntimeError: a string is no array of that size. Within a dataset whoever reads it
        has a tf.errors.OpError.
    """

    def write(strings: np.ndarray, begin: np.ndarray, *ends: np.ndarray) -> np.ndarray:
        batch = _empty((num_rows, len(strings), *shape), dtype)
        block = np.empty((blocks.num_rows, *shape), dtype)
        for b, (column, first, last) in enumerate(zip(strings, *ends, strict=True)):
            batch[: first - begin[b], b] = 0
            batch[last - begin[b] + 1 :, b] = 0
            final = (last - 1) // blocks.length  # whose row after its own may be the last one
            for m, string in enumerate(column[: final + 1]):
                decompress(string, block)
                own = m * blocks.length
                low = first if m == 0 else max(first, own)
                high = last if m == final else min(last, own + blocks.length - 1)
                batch[low - begin[b] : high - begin[b] + 1, b] = block[
                    blocks.context + low - own : blocks.context + high - own + 1
                ]
        return batch

    return tf.ensure_shape(
        tf.numpy_function(write, [strings, *columns], dtype), [num_rows, strings.shape[0], *shape]
    )


def _empty(shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    memory = np.empty(size + _ALIGNMENT, np.uint8)
    start = -memory.ctypes.data % _ALIGNMENT
    return memory[start : start + size].view(dtype).reshape(shape)
