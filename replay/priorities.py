"""Priorities from errors, the weights that undo their bias, and the way back to the table."""

import queue
import threading
from collections.abc import Sequence

import numpy as np
import reverb
import tensorflow as tf

from replay.insistence import insist


def mixed_priorities(abs_td: tf.Tensor, mask: tf.Tensor, eta: float) -> tf.Tensor:
    """An item's priority: a mix of the largest and the mean of its absolute errors.

        p = η max_t |δ_t| + (1 - η) mean_t |δ_t|,   t over the steps in the mask

    R2D2 (Kapturowski et al. 2019), Section 2.3, with n-step errors and η = 0.9.

    Args:
      abs_td: `[T, B]`, |δ| of the trained steps; the sign must be gone already, or errors would
        cancel.
      mask: `[T, B]` float, 1 on real steps.
      eta: η in [0, 1].

    Returns:
      `[B]`; 0 for an item without a real step.
    """
    abs_td, mask = tf.convert_to_tensor(abs_td), tf.convert_to_tensor(mask)
    tf.debugging.assert_shapes([(abs_td, ("T", "B")), (mask, ("T", "B"))])
    real = tf.where(mask > 0, abs_td, 0.0)  # where, not *: padding may hold anything, even infinity
    largest = tf.reduce_max(real, axis=0)  # [B]
    mean = tf.math.divide_no_nan(tf.reduce_sum(real, axis=0), tf.reduce_sum(mask, axis=0))
    return eta * largest + (1.0 - eta) * mean


def importance_weights(probability: tf.Tensor, table_size: tf.Tensor, beta: float) -> tf.Tensor:
    """Weights that undo, in part, the bias of sampling by priority.

        w_i = (N P(i))^-β / max_j (N P(j))^-β,   j over the whole batch

    Prioritized experience replay (Schaul et al. 2016), Section 3.4; R2D2's Table 2 gives β = 0.6.

    Args:
      probability: `[B]` float64, P(i).
      table_size: `[B]` int64, N.
      beta: β; 0 makes every weight 1.

    Returns:
      `[B]` float32 in (0, 1], the largest exactly 1.
    """
    probability = tf.cast(probability, tf.float64)  # N P(i) of a rare item underflows in float32
    size = tf.cast(table_size, tf.float64)
    tf.debugging.assert_shapes([(probability, ("B",)), (size, ("B",))])
    log_weight = -beta * (tf.math.log(size) + tf.math.log(probability))
    return tf.cast(tf.exp(log_weight - tf.reduce_max(log_weight)), tf.float32)


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
