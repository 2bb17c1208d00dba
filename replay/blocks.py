"""Blocks: packed rows of N environments, with compressed observations.

Reverb stores, sends and unpacks each column of a block by itself, and a small column costs as much
as some frames of Atari. So the small parts of a row share one column, int32 `[..., W]`:

    step_type  lives  action, or each of its components  log_probability  reward  continuation

Floats are there by their bits, so nothing is rounded.

Reverb compresses its chunks with Snappy, which copies 64 bytes at most at a time, and unpacks an
array with two more copies. A screen differs from the last one in few bytes, and LZ4 copies all
between them at once. So a block of Pong has 4 kB and not 17, and is unpacked in a fifth of the
time, straight to its place. Reverb takes strings as they are.
"""

import numpy as np
import tensorflow as tf
import tree
from acme import specs
from numcodecs.lz4 import LZ4

from replay.layout import BlockLayout
from replay.structures import LAST, Block, Record, Step

_CODEC = LZ4()
_SIZE_BYTES = 4  # at the beginning of a compressed string: the size of the array
_ALIGNMENT = 64  # bytes; TensorFlow copies an array that is not aligned so


def width(actions: specs.Array) -> int:
    """W, the numbers of a row, from the spec of its action."""
    return len(Record._fields) - 1 + int(np.prod(actions.shape))


def pack(step: Step) -> np.ndarray:
    """The small parts of a row of N environments, `[N, W]` int32."""
    n = len(step.reward)
    parts = [getattr(step, name) for name in Record._fields]
    return np.concatenate([_bits(part).reshape(n, -1) for part in parts], axis=1)


def _bits(values: np.ndarray) -> np.ndarray:
    if values.dtype.kind == "f":
        return np.ascontiguousarray(values, np.float32).view(np.int32)
    return values.astype(np.int32)


def unpack(packed: tf.Tensor, actions: specs.Array) -> Record:
    """The parts of rows `[..., W]`, each with the axes `[...]`; an action adds its own."""
    step_type, lives, *action, log_probability, reward, continuation = tf.unstack(packed, axis=-1)
    chosen = tf.stack(action, axis=-1) if actions.shape else action[0]
    floats = [tf.bitcast(part, tf.float32) for part in (log_probability, reward, continuation)]
    return Record(
        tf.cast(step_type, tf.uint8),
        tf.cast(lives, tf.uint8),
        tf.bitcast(chosen, tf.float32) if actions.dtype == np.float32 else chosen,
        *floats,
    )


def compressed(block: Block) -> Block:
    """One block `[rows, ...]`, its observation's arrays as strings `[]`."""
    return block._replace(observation=tree.map_structure(_compress, block.observation))


def _compress(rows: np.ndarray) -> np.ndarray:
    return np.array(_CODEC.encode(np.ascontiguousarray(rows)), dtype=object)


def decompress(string: bytes, into: np.ndarray) -> None:
    """Writes what one string of `compressed` holds.

    Raises:
      ValueError, RuntimeError: the string is no array of that size.
    """
    found = int.from_bytes(string[:_SIZE_BYTES], "little")
    if found != into.nbytes:
        raise ValueError(
            f"A stored observation of {found} bytes is none of {into.nbytes}, {list(into.shape)} "
            f"{into.dtype}."
        )
    if found:
        _CODEC.decode(string, into)


class BlockBuffer:
    """Each environment's block in the making, contiguous in arrays `[N, C + K + 1, ...]`.

    Every row of all N environments is written at once. An environment's block is complete when the
    row after its K rows is known. The next one then takes over its last C + 1 rows. Where blocks go
    by episode, a `LAST` row also completes a block, zeros behind it, and the next row begins one;
    that happens at most once in K rows, so short episodes share blocks.
    """

    def __init__(self, layout: BlockLayout, num_environments: int) -> None:
        """Makes an empty buffer; the first row decides the shapes."""
        self._layout = layout
        self._all = np.arange(num_environments)
        self._block: Block | None = None
        self._row = 0  # of the stream, the next one
        self._start = np.zeros(num_environments, np.int64)  # the row that is slot 0 of each block
        self._ended = np.full(num_environments, -layout.length)  # when an episode last ended one
        self._full, self._ends = np.zeros((2, num_environments), bool)  # with the newest row

    def write(self, step: Step) -> np.ndarray:
        """Takes the next row `[N, ...]`; returns the environments with a complete block."""
        row = Block(step.observation, pack(step))
        if self._block is None:
            self._block = tree.map_structure(self._zeros, row)
        elif (self._full | self._ends).any():
            self._begin_blocks()
        slots = self._row - self._start
        for buffer, leaf in zip(tree.flatten(self._block), tree.flatten(row), strict=True):
            buffer[self._all, self._layout.context + slots] = leaf
        self._complete(step, slots)
        self._row += 1
        return np.flatnonzero(self._full | self._ends)

    def block(self, environment: int) -> tuple[int, Block]:
        """An environment's block, as views that the next `write` changes, and its first own row."""
        views = tree.map_structure(lambda buffer: buffer[environment], self._block)
        return int(self._start[environment]), views

    def _complete(self, step: Step, slots: np.ndarray) -> None:
        self._full = slots == self._layout.length
        if not self._layout.by_episode:
            return
        rested = self._row - self._ended >= self._layout.length
        self._ends = (step.step_type == LAST) & rested
        self._ended[self._ends] = self._row
        for n in np.flatnonzero(self._ends):
            for buffer in tree.flatten(self._block):
                buffer[n, self._layout.context + slots[n] + 1 :] = 0

    def _begin_blocks(self) -> None:
        """Begins the blocks after those that the newest row completed."""
        going_on = self._full & ~self._ends
        self._start[going_on] += self._layout.length
        self._start[self._ends] = self._row
        context, length = self._layout.context, self._layout.length
        for buffer in tree.flatten(self._block):
            buffer[going_on, : context + 1] = buffer[going_on, length:]
            buffer[self._ends, :context] = 0  # an episode has nothing before it

    def _zeros(self, leaf: np.ndarray) -> np.ndarray:
        return np.zeros((len(leaf), self._layout.num_rows, *leaf.shape[1:]), leaf.dtype)
