"""Where a learner's batches come from: `Fetched` has the next batch of an iterator ready for it."""

import atexit
import contextlib
import queue
import threading
from collections.abc import Iterator
from typing import NamedTuple, Protocol

from agents import compilation
from replay.structures import Batch

_END_SECONDS = 5.0  # for a batch that is on its way; one that waits for replay may never come


class Ready(NamedTuple):
    """A batch that an update can take at once."""

    batch: Batch  # in the host's memory
    placed: Batch  # where the update reads it

    @classmethod
    def of(cls, batch: Batch) -> "Ready":
        """The batch, once it is where the update reads it."""
        return cls(batch, compilation.placed(batch))


class Batches(Protocol):
    """Where a learner's batches come from."""

    def next(self, timeout: float) -> Ready | None:
        """The next batch, if it comes within `timeout` seconds."""

    def close(self) -> None:
        """Lets go of all that waits for a batch."""


class Fetched:
    """The batches of an iterator, fetched by a thread and placed: one waits here.

    So one can wait for a batch for a limited time. A thread that comes back from TensorFlow after
    the interpreter has ended aborts the process; so the interpreter's end waits for the batch that
    is on its way, if that comes soon.

    Args:
      batches: endless.
    """

    def __init__(self, batches: Iterator[Batch]) -> None:
        self._ready: queue.Queue[Ready | BaseException] = queue.Queue(maxsize=1)
        self._closed = False
        self._thread = threading.Thread(target=self._fetch, args=(batches,), daemon=True)
        atexit.register(self._end)
        self._thread.start()

    def next(self, timeout: float) -> Ready | None:
        """The next batch, if it comes within `timeout` seconds.

        Raises:
          RuntimeError: the iterator raised an error, or ended.
        """
        try:
            ready = self._ready.get(timeout=timeout)
        except queue.Empty:
            return None
        if isinstance(ready, BaseException):
            self._ready.put(ready)  # for the next call: nothing else will come
            raise RuntimeError("The learner's stream of batches broke off.") from ready
        return ready

    def close(self) -> None:
        """Lets go of the thread, which ends when it has its next batch, or the last."""
        self._closed = True
        with contextlib.suppress(queue.Empty):
            self._ready.get_nowait()  # makes room for the batch fetched meanwhile

    def _end(self) -> None:
        self.close()
        self._thread.join(_END_SECONDS)

    def _fetch(self, batches: Iterator[Batch]) -> None:
        try:
            for batch in batches:
                self._ready.put(Ready.of(batch))
                if self._closed:
                    return
            self._ready.put(EOFError("The stream of batches ended."))
        except Exception as error:  # it is raised where the batch was wanted
            self._ready.put(error)
        finally:
            atexit.unregister(self._end)
