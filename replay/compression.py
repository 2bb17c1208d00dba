"""Observations of blocks, compressed by LZ4 before Reverb has them.

Reverb compresses what it stores with Snappy, one of whose copies is of 64 bytes at most, and
unpacks an array by way of two more copies. A screen differs from the last one in few bytes, and LZ4
copies all between them at once. So a block of Pong has 4 kB and not 17, and is unpacked in a fifth
of the time, to where it is wanted. Reverb takes strings as they are.
"""

import numpy as np
import tensorflow as tf
import tree
from acme import specs
from numcodecs.lz4 import LZ4

from replay.layout import BlockLayout
from replay.structures import Block

_CODEC = LZ4()
_SIZE_BYTES = 4  # with which what it compressed begins
_ALIGNMENT = 64  # bytes, without which TensorFlow copies an array to have it


def compressed(block: Block) -> Block:
    """One block `[rows, ...]`, its observation's arrays as strings `[]`."""
    return block._replace(observation=tree.map_structure(_compress, block.observation))


def decompressed(
    blocks: Block, environment_spec: specs.EnvironmentSpec, layout: BlockLayout
) -> Block:
    """Blocks `[..., M]`, their observations as they were, `[..., M, rows, *]`.

    Args:
      blocks: as `compressed` made them. An empty string gives a block whose first row is zeros. Its
        other rows are left unwritten, which saves time: nothing may read them.
      environment_spec: of one environment, with single frames as its observation.
      layout: as the writers cut them.

    Raises:
      ValueError, RuntimeError: a string is no array of that size. Within a dataset whoever reads it
        has a tf.errors.OpError.
    """

    def decompress(strings: tf.Tensor, spec: specs.Array) -> tf.Tensor:
        shape = [layout.num_rows, *spec.shape]
        arrays = tf.numpy_function(
            lambda strings: _decompress(strings, shape, spec.dtype), [strings], spec.dtype
        )
        return tf.ensure_shape(arrays, [*strings.shape, *shape])

    observation = tree.map_structure(decompress, blocks.observation, environment_spec.observations)
    return blocks._replace(observation=observation)


def _compress(rows: np.ndarray) -> np.ndarray:
    return np.array(_CODEC.encode(np.ascontiguousarray(rows)), dtype=object)


def _decompress(strings: np.ndarray, shape: list[int], dtype: np.dtype) -> np.ndarray:
    arrays = _aligned([*strings.shape, *shape], dtype)
    for string, into in zip(strings.flat, arrays.reshape(strings.size, *shape), strict=True):
        if not string:
            into[:1] = 0
            continue
        found = int.from_bytes(string[:_SIZE_BYTES], "little")
        if found != into.nbytes:
            raise ValueError(
                f"A stored observation of {found} bytes is none of {into.nbytes}, {shape} {dtype}."
            )
        if found:
            _CODEC.decode(string, into)
    return arrays


def _aligned(shape: list[int], dtype: np.dtype) -> np.ndarray:
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    memory = np.empty(size + _ALIGNMENT, np.uint8)
    start = -memory.ctypes.data % _ALIGNMENT
    return memory[start : start + size].view(dtype).reshape(shape)
