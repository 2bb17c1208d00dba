"""Reverb's trajectory writer, reduced to what a writer of blocks needs.

Every cell is a chunk of its own, compressed as soon as it is appended. A cell can be referred to by
items until `keep_alive` newer ones stand in its column, and items refer to cells by the references
that `append` returns.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import reverb
from reverb import errors
from reverb.trajectory_writer import TrajectoryColumn

Cell = Any  # Reverb's weak reference to one

_SLICE_MILLISECONDS = 500  # how long a stop may go unnoticed while a rate limiter blocks


class WriterStopped(Exception):
    """The program asked to stop while a table did not accept more items."""


class CellWriter:
    """Appends cells, creates items of them, and waits for tables to accept those."""

    def __init__(
        self, client: reverb.Client, keep_alive: int, should_stop: Callable[[], bool]
    ) -> None:
        """Makes a writer.

        Args:
          client: of the replay server.
          keep_alive: the most cells of one column that items may still refer to.
          should_stop: asked twice a second while a rate limiter blocks.
        """
        self._writer = client.trajectory_writer(keep_alive)
        self._should_stop = should_stop
        self._columns: dict[str, Any] = {}  # Reverb's histories of them

    def append(
        self, cells: Mapping[str, Sequence[np.ndarray]], keep_alive: int
    ) -> dict[str, list[Cell]]:
        """Appends one cell to each of some columns.

        Args:
          cells: the new cells of columns that go together, by the name of all of them.
          keep_alive: how many of a column items may refer to.

        Returns:
          References to the cells, in the same places.
        """
        data = {f"{name}/{i}": x for name, leaves in cells.items() for i, x in enumerate(leaves)}
        new = data.keys() - self._columns.keys()
        for column in new:
            self._writer.configure((column,), num_keep_alive_refs=keep_alive, max_chunk_length=1)
        self._writer.append(data)
        if new:
            self._columns = self._writer.history
        newest = iter([next(iter(self._columns[column][-1])) for column in data])
        return {name: [next(newest) for _ in leaves] for name, leaves in cells.items()}

    def create_item(
        self, table: str, priority: float, blocks: Sequence[Sequence[Cell]], own: Sequence[Cell]
    ) -> None:
        """Creates an item of references to cells.

        Args:
          table: where.
          priority: its first one.
          blocks: those of each block; together they are the item's first columns.
          own: those that follow, of a cell each.
        """
        columns = [TrajectoryColumn(column) for column in zip(*blocks, strict=True)]
        columns += [TrajectoryColumn([cell], squeeze=True) for cell in own]
        self._writer.create_item(table, priority, columns)

    def wait(self, pending: int) -> None:
        """Blocks until at most `pending` items are not yet in their table.

        Raises:
          WriterStopped: if `should_stop` said so meanwhile.
        """
        while True:
            try:
                return self._writer.flush(pending, timeout_ms=_SLICE_MILLISECONDS)
            except errors.DeadlineExceededError as error:
                if self._should_stop():
                    message = "Stopped while a table did not accept more items."
                    raise WriterStopped(message) from error

    def close(self) -> None:
        """Ends the stream; items that are not yet in their table are lost."""
        self._writer.close()
