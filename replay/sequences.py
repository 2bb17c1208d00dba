"""Cuts N streams into items, and remembers their newest rows to describe the items.

Everything here counts rows of the stream from 0, which is every environment's first row.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import tree

from replay.layout import Layout
from replay.structures import FIRST, LAST, Nest, PriorityInput


class History:
    """The last `size` rows of N environments, addressed by their number in the stream."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._rows: Nest = None  # [size, N, ...], made by the first row

    def write(self, row: int, values: Nest) -> None:
        """Stores `values` `[N, ...]` as row number `row`, in place of the one `size` rows older."""
        if self._rows is None:
            self._rows = tree.map_structure(
                lambda leaf: np.zeros((self._size, *leaf.shape), leaf.dtype), values
            )
        for rows, leaf in zip(tree.flatten(self._rows), tree.flatten(values), strict=True):
            rows[row % self._size] = leaf

    def read(self, rows: np.ndarray, environments: np.ndarray) -> Nest:
        """Rows `[...]` of environments `[...]` (they broadcast) -> values `[..., *]`."""
        return tree.map_structure(lambda leaf: leaf[rows % self._size, environments], self._rows)


class Facts(NamedTuple):
    """The remembered parts of a row, beside its core state."""

    step_type: np.ndarray  # [N] uint8
    lives: np.ndarray  # [N] uint8
    reward: np.ndarray  # [N] float32
    continuation: np.ndarray  # [N] float32
    learner_step: np.ndarray  # [N] int64
    values: dict[str, np.ndarray]  # [N] float32 each


class Cuts(NamedTuple):
    """M finished items. Every field is an `[M]` array of row numbers, except the first."""

    environment: np.ndarray
    start: np.ndarray  # its first real row
    trained: np.ndarray  # its first trained row
    end: np.ndarray  # the row after its last step

    def padding(self, burn_in: int) -> np.ndarray:
        """The rows of the burn-in that do not exist, `[M]`."""
        return burn_in - (self.trained - self.start)


class Cutter:
    """Cuts N streams into the items of one layout.

    Where items do not cross episodes, trained parts begin `period` rows apart from each episode's
    first row on, and the first item that reaches the episode's end is its last one. Where they do,
    they begin `period` rows apart from row 0 on, and `LAST` rows are rows like any other.
    """

    def __init__(self, layout: Layout, num_environments: int) -> None:
        self._layout = layout
        # The episode's first row, before which no item reaches.
        self._origin = [0] * num_environments
        self._trained = [0] * num_environments  # of the next item

    def cut(
        self, newest: int, environments: Sequence[int], last_rows: Sequence[Sequence[int]]
    ) -> Cuts:
        """Returns the items that became complete.

        Args:
          newest: the newest row with a known observation.
          environments: those to be cut, in ascending order.
          last_rows: the `LAST` rows of each since its previous cut, in order.
        """
        items = []
        for n, rows in zip(environments, last_rows, strict=True):
            items += self._cut_one(n, newest, () if self._layout.crosses_episodes else rows)
        return Cuts(*np.asarray(items, np.int64).reshape(-1, len(Cuts._fields)).T)

    def _cut_one(self, n: int, newest: int, ends: Sequence[int]) -> list[tuple[int, ...]]:
        items = []
        for end in ends:
            while self._trained[n] + self._layout.length < end:
                items.append(self._next(n, self._trained[n] + self._layout.length))
            items.append(self._next(n, end))
            self._origin[n] = self._trained[n] = end + 1
        while self._trained[n] + self._layout.length <= newest:
            items.append(self._next(n, self._trained[n] + self._layout.length))
        return items

    def _next(self, n: int, end: int) -> tuple[int, ...]:
        trained = self._trained[n]
        start = max(self._origin[n], trained - self._layout.burn_in)
        self._trained[n] += self._layout.period
        return n, start, trained, end


def priority_input(cuts: Cuts, length: int, facts: History) -> PriorityInput:
    """An actor's record of finished items, time-major, zero past their ends.

    L, `length`, are the trained rows of a full item; `facts` reach back to the row before each
    item's first trained one.
    """
    rows = cuts.trained + np.arange(length + 1)[:, None]  # [L + 1, M]
    now: Facts = facts.read(rows, cuts.environment)
    before: Facts = facts.read(rows - 1, cuts.environment)
    known = rows <= cuts.end  # [L + 1, M]
    acted = (rows < cuts.end)[:-1]  # [L, M]
    life_lost = known & (now.step_type != FIRST) & (now.lives < before.lives)
    return PriorityInput(
        values={name: np.where(known, value, 0) for name, value in now.values.items()},
        reward=np.where(acted, now.reward[:-1], 0),
        continuation=np.where(acted, now.continuation[:-1], 0),
        life_lost=life_lost,
        mask=(acted & (now.step_type[:-1] != LAST)).astype(np.float32),
    )
