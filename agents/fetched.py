"""Batches that a thread fetches, so that whoever waits for one can do so for a limited time.

A thread that comes back from TensorFlow when the interpreter has ended aborts the process. So the
interpreter's end waits for the batch that is on its way, if that comes soon.
"""

import atexit
import contextlib
import queue
import threading
from collections.abc import Iterator

from replay.structures import Batch

_END_SECONDS = 5.0  # for a batch that is on its way; one that waits for replay may never come


class Fetched:
    """The batches of an iterator; one waits here, ready.

    Args:
      batches: endless.
    """

    def __init__(self, batches: Iterator[Batch]) -> None:
        self._ready: queue.Queue[Batch | BaseException] = queue.Queue(maxsize=1)
        self._closed = False
        self._thread = threading.Thread(target=self._fetch, args=(batches,), daemon=True)
        atexit.register(self._end)
        self._thread.start()

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

    def _end(self) -> None:
        self.close()
        self._thread.join(_END_SECONDS)

    def _fetch(self, batches: Iterator[Batch]) -> None:
        try:
            for batch in batches:
                self._ready.put(batch)
                if self._closed:
                    return
            self._ready.put(EOFError("The stream of batches ended."))
        except Exception as error:  # it is raised where the batch was wanted
            self._ready.put(error)
        finally:
            atexit.unregister(self._end)
