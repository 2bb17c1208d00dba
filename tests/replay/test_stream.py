"""A stream of batches ends for whoever waits for the next, and takes its threads with it."""

import os
import threading
import time

import numpy as np
import reverb
import tensorflow as tf

from replay.dataset import Stream
from tests.patience import PATIENCE, wait_for


def _threads() -> int:
    return len(os.listdir("/proc/self/task"))


def _sampled(server: reverb.Server) -> tf.data.Dataset:
    """The items of an in-process queue, which is empty."""
    return reverb.TimestepDataset(
        f"localhost:{server.port}",
        "queue",
        dtypes=tf.int32,
        shapes=tf.TensorShape([]),
        max_in_flight_samples_per_worker=1,
    ).prefetch(1)


def test_it_gives_what_the_dataset_has_and_ends_with_it() -> None:
    stream = Stream(tf.data.Dataset.range(3))
    assert np.array(list(stream)).tolist() == [0, 1, 2]
    assert list(stream) == []


def _wait_and_close() -> int:
    """How many more threads there were while another one waited for the next batch."""
    server = reverb.Server([reverb.Table.queue("queue", max_size=8)])
    stream, before, ended = Stream(_sampled(server)), _threads(), threading.Event()

    def read() -> None:
        assert list(stream) == []
        ended.set()

    threading.Thread(target=read, daemon=True).start()
    time.sleep(0.3)
    assert not ended.is_set()
    waiting = _threads()
    server.stop()
    stream.close()
    assert ended.wait(PATIENCE)
    return waiting - before


def test_it_ends_for_a_thread_that_waits_for_the_next() -> None:
    _wait_and_close()
    before, count = _threads(), 4  # those included that TensorFlow keeps from the first on
    assert sum(_wait_and_close() for _ in range(count)) > 2 * count
    wait_for(lambda: _threads() < before + count)  # a pool of TensorFlow's may have grown meanwhile
