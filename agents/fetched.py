"""Batches that a thread fetches, so that whoever waits for one can do so for a limited time."""

import contextlib
import queue
import threading
from collections.abc import Iterator

from replay.structures import Batch


class Fetched:
    """The batches of an iterator; one waits here, ready.

    Args:
      batches: endless.
    """

    def __init__(self, batches: Iterator[Batch]) -> None:
        self._ready: queue.Queue[Batch | BaseException] = queue.Queue(maxsize=1)
        self._closed = False
        threading.Thread(target=self._fetch, args=(batches,), daemon=True).start()

    def next(self, timeout: float) -> Batch | None:
        """The next batch, if it comes within `timeout` seconds.

        Raises:
          RuntimeError: the iterator raised an error, or ended.
        """
        try:
            batch = self._ready.get(timeout=timeout)
        except queue.Empty:
            return None
        if isinstance(batch, BaseException):
            self._ready.put(batch)  # for whoever asks again: nothing else will come
            raise RuntimeError("The learner's stream of batches broke off.") from batch
        return batch

    def close(self) -> None:
        """Lets go of the thread, which ends when it has its next batch, or the last."""
        self._closed = True
        with contextlib.suppress(queue.Empty):
            self._ready.get_nowait()  # what it has fetched meanwhile finds room

    def _fetch(self, batches: Iterator[Batch]) -> None:
        try:
            for batch in batches:
                self._ready.put(batch)
                if self._closed:
                    return
            self._ready.put(EOFError("The stream of batches ended."))
        except Exception as error:  # it is raised where the batch was wanted
            self._ready.put(error)
