"""The buffer in which rows of N environments become blocks."""

import numpy as np
import tree

from replay import records
from replay.layout import BlockLayout
from replay.structures import LAST, Block, Step


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
        """Takes the next row `[N, ...]`; returns the environments whose blocks it completes."""
        row = Block(step.observation, records.pack(step))
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
