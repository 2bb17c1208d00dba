"""The replay's part of a run's checkpoints, on a disk that all share or in a bucket.

A Reverb server writes to the disk of its own host. Where that is the learner's too, a finished
checkpoint is moved; else the server's host ships it to the bucket, and there it is moved:

    checkpoints/staging/0/<time>/    as the server of shard 0 wrote it; DONE comes last
    checkpoints/replay/1200-.../0/   once a manifest is to name it

All of this goes through TensorFlow's file system, which both are for it.
"""

import contextlib
import os
import pathlib
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import reverb
import tensorflow as tf
import tree
from reverb.cc import schema_pb2
from reverb.cc.checkpointing import checkpoint_pb2

from run_folder import disk, layout
from run_folder.checkpoints import REPLAY, DamagedError

_TABLES = "tables.tfrecord"
DONE = "DONE"  # the file that Reverb ends a checkpoint with
POLL_SECONDS = 0.5
ANNOUNCED_BYTES = 200e6  # of a replay whose checking takes seconds
SHIP_SECONDS = 1_800.0  # in which a checkpoint must reach the bucket


def keep_shipping(staging: pathlib.Path, to: str) -> None:
    """Ships, from now on, every checkpoint that is finished in a folder."""
    threading.Thread(target=_ship_for_ever, args=(staging, to), daemon=True).start()


def _ship_for_ever(staging: pathlib.Path, to: str) -> None:
    shipped: set[str] = set()
    while True:
        for done in staging.glob(f"*/{DONE}"):
            name = done.parent.name
            if name not in shipped:
                try:
                    ship(done.parent, f"{to}/{name}")
                    shipped.add(name)
                except (tf.errors.OpError, OSError) as error:  # once more, if it is there still
                    print(f"{to}/{name} could not be written: {disk.said(error)}.", file=sys.stderr)
        time.sleep(POLL_SECONDS)


def ship(folder: pathlib.Path, to: str) -> None:
    """Copies a finished checkpoint; who sees its last file there sees all of it."""
    tf.io.gfile.makedirs(to)
    for file in sorted(folder.iterdir(), key=lambda file: file.name == DONE):
        tf.io.gfile.copy(str(file), f"{to}/{file.name}", overwrite=True)


class ReplayFiles:
    """The replays of a run's checkpoints.

    Args:
      root: the checkpoint folder, as TensorFlow's file system names it.
    """

    def __init__(self, root: str) -> None:
        self._root = root
        self._apart = layout.is_bucket(root)

    def take(self, written: Sequence[str], name: str) -> None:
        """Moves the folder that each shard's server wrote to one that a manifest can name.

        Raises:
          TimeoutError: when a shard's host does not ship it.
        """
        tf.io.gfile.makedirs(f"{self._root}/{name}")
        for shard, folder in enumerate(written):
            to = f"{self._root}/{name}/{shard}"
            if not self._apart:
                disk.sync(*pathlib.Path(folder).iterdir())
                tf.io.gfile.rename(folder, to)
                continue
            staged = self._shipped(shard, folder)
            tf.io.gfile.makedirs(to)
            for file in tf.io.gfile.listdir(staged):  # a bucket's folders are names only
                tf.io.gfile.rename(f"{staged}/{file}", f"{to}/{file}")

    def sizes(self, name: str) -> dict[str, int]:
        """Bytes of every file of a replay, by its name in checkpoints/."""
        found = {}
        for folder, _, files in tf.io.gfile.walk(f"{self._root}/{name}"):
            for file in files:
                path = f"{folder.rstrip('/')}/{file}"
                found[path.removeprefix(f"{self._root}/")] = tf.io.gfile.stat(path).length
        return found

    def remove_others(self, name: str | None) -> None:
        """Removes every replay but one; what is no saver's stays."""
        if not tf.io.gfile.exists(f"{self._root}/replay"):
            return
        for folder in tf.io.gfile.listdir(f"{self._root}/replay"):
            other = f"replay/{folder.rstrip('/')}"
            path = f"{self._root}/{other}"
            if other != name and REPLAY.holds(other) and not os.path.islink(path):
                tf.io.gfile.rmtree(path)

    def _shipped(self, shard: int, folder: str) -> str:
        """Where a checkpoint is in the bucket, once it is there."""
        url = f"{self._root}/staging/{shard}/{os.path.basename(folder.rstrip('/'))}"
        until = time.monotonic() + SHIP_SECONDS
        while not tf.io.gfile.exists(f"{url}/{DONE}"):
            if time.monotonic() > until:
                raise TimeoutError(f"Shard {shard} of the replay has not reached {url}.")
            time.sleep(POLL_SECONDS)
        return url


def check_records(folder: pathlib.Path) -> None:
    """Compares the checksums of all that Reverb wrote, as it will when it reads: minutes later.

    Raises:
      DamagedError: one is wrong; it names the file.
    """
    files = sorted(folder.rglob("*.tfrecord"))
    size = sum(file.stat().st_size for file in files)
    if size >= ANNOUNCED_BYTES:
        with contextlib.suppress(OSError):  # nobody reads any more
            print(f"Checking {size / 1e9:.1f} GB of saved replay.", flush=True)
    for file in files:
        records = tf.data.TFRecordDataset(str(file), compression_type="ZLIB")
        try:
            records.reduce(np.int64(0), lambda count, _: count + 1)
        except tf.errors.OpError as error:
            said = disk.said(error)
            raise DamagedError(f"The saved replay is corrupt: {file}: {said}.") from None


def check_columns(folder: pathlib.Path, tables: Sequence[reverb.Table]) -> None:
    """Compares the columns of a saved replay with those of one shard's tables.

    Reverb would load other columns than a table's, and the learner fail at its first batch.

    Raises:
      DamagedError: a table is missing, or its columns have other names, shapes or types.
    """
    for file in sorted(folder.rglob(_TABLES)):
        saved = dict(_saved_columns(file))
        for table in tables:
            found = saved.get(table.name, {})
            if found is not None and found != _columns(table.info.signature):
                raise DamagedError(
                    f"The saved replay {file.parent} was written by another version, or for other "
                    f"observations: its table {table.name!r} has other columns."
                )


_Columns = dict[tuple[str | int, ...], tf.TensorSpec]


def _saved_columns(file: pathlib.Path) -> Iterator[tuple[str, _Columns | None]]:
    """Each table's; None of one that takes anything."""
    for record in tf.data.TFRecordDataset(str(file), compression_type="ZLIB"):
        saved = checkpoint_pb2.PriorityTableCheckpoint.FromString(record.numpy())
        if not saved.HasField("signature"):
            yield saved.table_name, None
            continue
        info = schema_pb2.TableInfo(name=saved.table_name, signature=saved.signature)
        table = reverb.reverb_types.TableInfo.from_serialized_proto(info.SerializeToString())
        yield table.name, _columns(table.signature)


def _columns(signature: Any) -> _Columns:
    """The shape and type of each column, and what a compressed one was, by its path."""
    return dict(tree.flatten_with_path(signature))
