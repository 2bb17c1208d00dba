"""Replay: python -m benchmarks.replay --agent=r2d2 --num_shards=1,2,4 --num_items=4000

Recorded frames of Pong are written into servers in processes of their own, then sampled by this
one: from each server as many items of every batch. `sampled` is what Reverb's client delivers,
`batches` what a learner gets: decompressed, padded, time-major, of single frames. `cpu of a batch`
is what making one costs this process. Items are those of the agent's own table, context rows
included.
"""

import functools
import os
import time

import reverb
import tensorflow as tf
from absl import flags

from benchmarks import local_replay, measuring
from benchmarks.local_replay import LocalReplay
from benchmarks.measuring import Contestant, Report, figure, single, timed
from benchmarks.subject import Subject

_REFERENCE = 100_000  # items for which memory is given
_BATCHES = 20  # of which the processor's time is taken
_NUM_SHARDS = measuring.define_counts("num_shards", [1, 2, 4], "Servers.")
_NUM_ITEMS = flags.DEFINE_integer("num_items", 4_000, "Items to write, about.", lower_bound=1)


def main(measured: Subject, report: Report) -> None:
    try:
        for num_shards in _NUM_SHARDS.value:
            local_replay.check(measured, num_shards)
    except ValueError as error:
        measuring.fail(str(error))
    for num_shards in _NUM_SHARDS.value:
        with LocalReplay(measured, num_shards) as replay:
            _measure_writing(replay, report, num_shards)
            _measure_reading(replay, report, num_shards, measured)


def _measure_writing(replay: LocalReplay, report: Report, num_shards: int) -> None:
    before = replay.resident_bytes()
    seconds = replay.fill(_NUM_ITEMS.value)
    items, memory = replay.num_items(), replay.resident_bytes() - before
    gigabytes = memory / items * _REFERENCE / 1e9
    report.add(f"memory of {_REFERENCE} items, {num_shards}", single(gigabytes, "GB"))
    report.add(f"inserted, {num_shards}", single(items / seconds, "items/s"))


def _measure_reading(
    replay: LocalReplay, report: Report, num_shards: int, measured: Subject
) -> None:
    size = measured.agent.batch_size
    samples = [_samples(replay, address, size // num_shards) for address in replay.addresses]
    clients = {"sampled": tf.data.Dataset.zip(tuple(samples)), "batches": replay.batches()}
    for name, client in clients.items():  # one after the other: each fetches ahead
        stream = iter(client)
        step = timed(functools.partial(next, stream))
        (found,) = measuring.alternate({name: Contestant(step, size)}).values()
        report.add(f"{name}, {num_shards}", figure(found, "items/s"))
    began = time.process_time()
    for _ in range(_BATCHES):
        next(stream)
    milliseconds = 1000 * (time.process_time() - began) / _BATCHES
    report.add(f"cpu of a batch, {num_shards}", single(milliseconds, "ms"))


def _samples(replay: LocalReplay, address: str, size: int) -> tf.data.Dataset:
    """The keys of so many items at a time, for which whole items have to come."""
    cores = len(os.sched_getaffinity(0))
    found = reverb.TrajectoryDataset.from_table_signature(
        address,
        replay.table.name,
        max_in_flight_samples_per_worker=2 * size,
        num_workers_per_iterator=cores,  # each unpacks for itself
    )

    return found.map(lambda sample: sample.info.key).batch(size)


if __name__ == "__main__":
    measuring.run(main, ["num_shards", "num_items"])
