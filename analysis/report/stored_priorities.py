"""The priorities of what is in replay, as the newest checkpoint of a run holds them.

They are read from the files that Reverb's own checkpointer writes: a run computes and logs nothing
more for it.
"""

import pathlib
from typing import NamedTuple

import numpy as np
import tensorflow as tf
from reverb.cc import schema_pb2

from run_folder import checkpoints

_ITEMS = "items.tfrecord"
_AT_ONCE = 1_000


class Stored(NamedTuple):
    """The items of one table when the replay was saved."""

    priority: np.ndarray  # [items], before any exponent
    times_sampled: np.ndarray  # [items]


def read(folder: pathlib.Path) -> dict[str, Stored]:
    """By table, what the replay that the manifest names holds; nothing where there is none.

    Args:
      folder: a run's checkpoint folder. Of a run that goes on a checkpoint may be superseded, and
        removed, while it is read: then there is nothing either.
    """
    try:
        manifest = checkpoints.read(folder)
        if manifest is None or manifest.replay is None:
            return {}
        files = sorted((folder / manifest.replay).glob(f"*/{_ITEMS}"))
        return _by_table([str(file) for file in files])
    except (checkpoints.CheckpointError, tf.errors.OpError):
        return {}


def _by_table(files: list[str]) -> dict[str, Stored]:
    found: dict[str, list[tuple[float, int]]] = {}
    for records in tf.data.TFRecordDataset(files, compression_type="ZLIB").batch(_AT_ONCE):
        for record in records.numpy():
            item = schema_pb2.PrioritizedItem.FromString(record)
            found.setdefault(item.table, []).append((item.priority, item.times_sampled))
    return {
        table: Stored(*(np.asarray(column) for column in zip(*items, strict=True)))
        for table, items in found.items()
    }
