"""The buffer in which K rows of N environments become N blocks."""

from collections.abc import Iterator

import numpy as np
import tree

from replay.structures import Block, Step


class BlockBuffer:
    """`[N, K + 1, ...]` arrays, environment-major: each environment's block is contiguous."""

    def __init__(self, length: int) -> None:
        """Makes an empty buffer of `length` (K) rows; the first row decides N and the shapes."""
        self._length = length
        self._block: Block | None = None

    def write(self, slot: int, step: Step) -> None:
        """Stores one row; of the row after the block (slot K) only what is observed fits."""
        if self._block is None:
            self._block = self._allocate(step)
        observed = slot == self._length
        source = Block(*(getattr(step, name) for name in Block._fields))
        for buffers, leaves in zip(self._block, source, strict=True):
            for buffer, leaf in zip(tree.flatten(buffers), tree.flatten(leaves), strict=True):
                if not observed or buffer.shape[1] > self._length:
                    buffer[:, slot] = leaf

    def blocks(self) -> Iterator[Block]:
        """Each environment's block, as views that the next `write` changes."""
        for n in range(len(self._block.reward) if self._block is not None else 0):
            yield tree.map_structure(lambda buffer, n=n: buffer[n], self._block)

    def _allocate(self, step: Step) -> Block:
        def rows(leaf: np.ndarray, count: int) -> np.ndarray:
            return np.zeros((len(leaf), count, *leaf.shape[1:]), leaf.dtype)

        return Block(
            observation=tree.map_structure(
                lambda leaf: rows(leaf, self._length + 1), step.observation
            ),
            step_type=rows(step.step_type, self._length + 1),
            lives=rows(step.lives, self._length + 1),
            action=rows(step.action, self._length),
            log_probability=rows(step.log_probability, self._length),
            reward=rows(step.reward, self._length),
            continuation=rows(step.continuation, self._length),
        )
