"""Reverb's trajectory writer, reduced to what a writer of blocks needs.

Every cell is a chunk of its own, compressed as soon as it is appended. A cell can be referred to by
items until `keep_alive` newer ones stand in its column, and items refer to cells by the references
that `append` returns.
"""

from collections.abc import Callable, Sequence
from typing import Any

import reverb
import tree
from reverb import errors
from reverb.trajectory_writer import TrajectoryColumn

from replay.structures import Block, Item, Nest

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
        self._columns: dict[tuple[str | int, ...], Any] = {}  # Reverb's histories of them

    def append(self, data: dict[str, Nest], keep_alive: int) -> dict[str, Nest]:
        """Appends one cell to every column of `data`, and returns references to them."""
        paths = [path for path, _ in tree.flatten_with_path(data)]
        for path in paths:
            if path not in self._columns:
                self._writer.configure(path, num_keep_alive_refs=keep_alive, max_chunk_length=1)
        self._writer.append(data)
        if any(path not in self._columns for path in paths):
            self._columns = dict(tree.flatten_with_path(self._writer.history))
        newest = [next(iter(self._columns[path][-1])) for path in paths]
        references: dict[str, Nest] = tree.unflatten_as(data, newest)
        return references

    def create_item(
        self, table: str, priority: float, blocks: Sequence[Block], header: Any, core_state: Nest
    ) -> None:
        """Creates an item of references to cells."""
        item = Item(
            blocks=tree.map_structure(lambda *column: TrajectoryColumn(column), *blocks),
            header=_scalar(header),
            core_state=tree.map_structure(_scalar, core_state),
        )
        self._writer.create_item(table, priority, item)

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


def _scalar(cell: Any) -> TrajectoryColumn:
    return TrajectoryColumn([cell], squeeze=True)
