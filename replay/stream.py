"""Reading a dataset of batches until somebody wants no more.

An iterator of TensorFlow's that waits for replay's next item cannot be given up: the thread that
waits, and those of Reverb that sample for it, would go on until the process ends. Each of the
latter wakes up all the time once its server is gone.
"""

from collections.abc import Iterator

import tensorflow as tf
from tensorflow.python.eager import cancellation

from replay.structures import Batch


class Stream(Iterator[Batch]):
    """The batches of a dataset, which end when it is closed.

    Args:
      dataset: of batches, as `replay.dataset.make_dataset` makes it.
    """

    def __init__(self, dataset: tf.data.Dataset) -> None:
        self._iterator: tf.data.Iterator | None = iter(dataset)
        self._manager = cancellation.CancellationManager()
        read = tf.function(lambda iterator: iterator.get_next(), autograph=False)
        self._read = self._manager.get_cancelable_function(
            read.get_concrete_function(self._iterator)
        )

    def __next__(self) -> Batch:
        iterator = self._iterator
        if iterator is None:
            raise StopIteration
        try:
            batch: Batch = self._read(iterator)
        except (tf.errors.OutOfRangeError, tf.errors.CancelledError):
            raise StopIteration from None
        return batch

    def close(self) -> None:
        """Ends the stream, for a thread too that waits for its next batch."""
        self._iterator = None  # what samples for it ends with it
        self._manager.start_cancel()
