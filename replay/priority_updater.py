"""The way of new priorities back to the table."""

import queue
import threading
from collections.abc import Sequence

import numpy as np
import reverb

from replay.insistence import insist


class PriorityUpdater:
    """Writes priorities back to the shards of one table from a thread of its own, in order.

    The learner waits for the server only when it is a few batches ahead: nothing is ever dropped.
    An error of the server reaches the learner at its next call.
    """

    _POLL_SECONDS = 0.1

    def __init__(self, clients: Sequence[reverb.Client], table: str, max_waiting: int = 4) -> None:
        """Starts the thread.

        Args:
          clients: of the servers that the items were sampled from, in the order of the shards.
          table: its name there.
          max_waiting: batches that may wait to be written before `update` blocks.
        """
        self._clients = clients
        self._table = table
        self._waiting: queue.Queue[list[dict[int, float]] | None] = queue.Queue(max_waiting)
        self._error: Exception | None = None
        self._thread = threading.Thread(target=self._write, name=f"priorities-{table}", daemon=True)
        self._thread.start()

    def update(self, shard: np.ndarray, key: np.ndarray, priority: np.ndarray) -> None:
        """Hands over a batch of new priorities; of an item that occurs twice the later counts.

        Args:
          shard: `[B]` integers, as the batch holds them: the shard of each key.
          key: `[B]` uint64, as the batch holds it.
          priority: `[B]`, finite and not negative.

        Raises:
          ValueError: if there is not a priority for each item, or one is negative, infinite or not
            a number.
          RuntimeError: if the thread is closed, or a server refused an earlier update.
        """
        priority = np.asarray(priority, np.float64)
        if key.shape != priority.shape:
            raise ValueError(f"{key.size} items need a priority each, got {priority.shape}.")
        wrong = priority[~(np.isfinite(priority) & (priority >= 0))]
        if wrong.size:
            raise ValueError(f"Priorities must be finite and not negative, got {wrong[0]}.")
        updates: list[dict[int, float]] = [{} for _ in self._clients]
        for s, k, p in zip(shard.tolist(), key.tolist(), priority.tolist(), strict=True):
            updates[s][k] = p
        self._put(updates)

    def close(self) -> None:
        """Writes the priorities that still wait, then ends the thread.

        Raises:
          RuntimeError: if the server refused an update.
        """
        if self._thread.is_alive():
            self._put(None)
            self._thread.join()
        self._raise_error()

    def _put(self, updates: list[dict[int, float]] | None) -> None:
        while True:
            self._raise_error()
            if not self._thread.is_alive():
                raise RuntimeError(f"The updater of table {self._table!r} is closed.")
            try:
                return self._waiting.put(updates, timeout=self._POLL_SECONDS)
            except queue.Full:
                continue

    def _write(self) -> None:
        try:
            while (updates := self._waiting.get()) is not None:
                for client, of_shard in zip(self._clients, updates, strict=True):
                    if of_shard:
                        self._write_to(client, of_shard)
        except Exception as error:  # whatever it was, the learner's thread must hear of it
            self._error = error

    def _write_to(self, client: reverb.Client, updates: dict[int, float]) -> None:
        insist(client, lambda: client.mutate_priorities(self._table, updates=updates))

    def _raise_error(self) -> None:
        if self._error is not None:
            raise RuntimeError(
                f"Table {self._table!r} refused new priorities: {self._error}"
            ) from self._error
