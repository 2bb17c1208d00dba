"""The buffer in which K rows of N environments become N blocks."""

from collections.abc import Iterator

import numpy as np
import tree

from replay import records
from replay.structures import Block, Step


class BlockBuffer:
    """`[N, K + 1, ...]` arrays, environment-major: each environment's block is contiguous."""

    def __init__(self, length: int) -> None:
        """Makes an empty buffer of `length` (K) rows; the first row decides N and the shapes."""
        self._length = length
        self._block: Block | None = None

    def write(self, slot: int, step: Step) -> None:
        """Stores one row; slot K is that of the row after the block."""
        row = Block(step.observation, records.pack(step))
        if self._block is None:
            self._block = tree.map_structure(self._rows, row)
        for buffer, leaf in zip(tree.flatten(self._block), tree.flatten(row), strict=True):
            buffer[:, slot] = leaf

    def blocks(self) -> Iterator[Block]:
        """Each environment's block, as views that the next `write` changes."""
        for n in range(len(self._block.records) if self._block is not None else 0):
            yield tree.map_structure(lambda buffer, n=n: buffer[n], self._block)

    def _rows(self, leaf: np.ndarray) -> np.ndarray:
        return np.zeros((len(leaf), self._length + 1, *leaf.shape[1:]), leaf.dtype)
