"""The replay in a run's newest checkpoint: its priorities, and how old its items are."""

import contextlib
import os
import pathlib
import shutil
import sys
import tempfile
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import reverb
import tensorflow as tf
import tree
from reverb.cc import schema_pb2
from reverb.cc.checkpointing import checkpoint_pb2

from replay import own_server, tables
from replay.structures import UNKNOWN, Header
from run_folder import building, checkpoints, disk, replay_files
from run_folder.checkpoints import CheckpointError
from run_folder.settings import Settings
from tensor_ops.xla import silence

_ITEMS, _TABLES, _COMPRESSION = "items.tfrecord", "tables.tfrecord", "ZLIB"  # of Reverb's own files
_AT_ONCE = 1_000
_PREFIX = "served-replay-"  # of what is nobody's but this module's in a run folder


class Stored(NamedTuple):
    """The items of one table when the replay was saved."""

    priority: np.ndarray  # [items], before any exponent
    times_sampled: np.ndarray  # [items]


def stored(folder: pathlib.Path) -> dict[str, Stored]:
    """The items of the replay that the manifest names, by table; nothing where there is none.

    They are read from the files that Reverb's own checkpointer writes. A run that goes on may
    remove a checkpoint while it is read; then there is nothing either.

    Args:
      folder: a run's checkpoint folder.
    """
    found: dict[str, list[tuple[float, int]]] = {}
    with contextlib.suppress(CheckpointError, tf.errors.OpError):
        manifest = checkpoints.read(folder)
        if manifest is None or manifest.replay is None:
            return {}
        files = sorted(str(file) for file in (folder / manifest.replay).glob(f"*/{_ITEMS}"))
        for records in tf.data.TFRecordDataset(files, _COMPRESSION).batch(_AT_ONCE):
            for record in records.numpy():
                item = schema_pb2.PrioritizedItem.FromString(record)
                found.setdefault(item.table, []).append((item.priority, item.times_sampled))
        return {table: Stored(*np.asarray(items).T) for table, items in found.items()}
    return {}


class Sampled(NamedTuple):
    """M samples of an agent's first table; those in which another agent acted are left out."""

    lag: np.ndarray  # [M] updates from the oldest parameters that acted to when replay was saved
    probability: np.ndarray  # [M] of sampling such an item


def sample(run: Settings, name: str, count: int) -> Sampled | None:
    """Samples a saved replay by its own priorities; a queue gives each of its items once.

    Args:
      run: the settings of the run.
      name: of the agent whose table is sampled.
      count: the most samples.

    Returns:
      None where no replay was saved, or the table was empty.

    Raises:
      CheckpointError: when it was, but is damaged.
    """
    folder = run.folder.checkpoints
    manifest = checkpoints.read(folder)
    if manifest is None or manifest.replay is None:
        return None
    parts = [
        _sample_shard(run, name, folder / manifest.replay, shard, count // run.num_replay_shards)
        for shard in range(run.num_replay_shards)
    ]
    learner_step, probability = np.concatenate(parts, axis=1)
    known = learner_step != UNKNOWN
    if not known.any():
        return None
    return Sampled(manifest.replay_step - learner_step[known], probability[known] / len(parts))


def _sample_shard(
    run: Settings, name: str, replay: pathlib.Path, shard: int, count: int
) -> np.ndarray:
    """Learner steps and probabilities, `[2, M]`."""
    agents, spec = building.make_agents(run), building.environment_spec(run)
    table = agents[name].tables[0]
    blocks = tables.block_layout(building.all_tables(agents))
    item = tables.signature(spec, building.core_state_spec(agents[name], spec), blocks)
    header = [path for path, _ in tree.flatten_with_path(item)].index(("header",))
    replay_files.check_columns(replay / str(shard), building.tables_of_shard(run, shard))
    with served(run, replay, shard) as client:
        size = client.server_info()[table.name].current_size
        most = size if table.kind == "queue" else count * (size > 0)
        drawn = min(count, most)  # Reverb takes 0 for an error
        samples = client.sample(table.name, drawn, emit_timesteps=False) if drawn else ()
        pairs = [
            (Header(*sample.data[header]).learner_step, sample.info.probability)
            for sample in samples
        ]
    return np.asarray(pairs, float).reshape(-1, 2).T


@contextlib.contextmanager
def served(run: Settings, replay: pathlib.Path, shard: int) -> Iterator[reverb.Client]:
    """A server of a saved shard, while the context lasts, from which the learner's part is drawn.

    Its rate limiter is changed: it was about to make the reader wait for actors, and nobody acts.
    """
    sys.stderr.flush()
    # Reverb prints a line for every hundred chunks it reads.
    with _folder_in(run.path) as folder, silence():
        copy = folder / "copy"
        _copy(replay / str(shard), copy)
        own = folder / "own"  # where this server would write
        checkpointer = reverb.checkpointers.DefaultCheckpointer(str(own), "", str(copy))
        server = reverb.Server(building.tables_of_shard(run, shard), checkpointer=checkpointer)
        try:
            client = server.localhost_client()
            client.server_info()  # connects it
            own_server.shut(server)
            yield client
        finally:
            server.stop()


@contextlib.contextmanager
def _folder_in(run_dir: pathlib.Path) -> Iterator[pathlib.Path]:
    """A folder for this process in a run's, once those are removed that killed processes left.

    Their links keep replays on the disk which the run has removed.
    """
    for left in run_dir.glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError), disk.locked(left):  # or another process is at work there
            shutil.rmtree(left, ignore_errors=True)
    with (
        tempfile.TemporaryDirectory(dir=run_dir, prefix=_PREFIX) as name,
        contextlib.ExitStack() as lock,
    ):
        folder = pathlib.Path(name)
        with contextlib.suppress(OSError):  # of a file system without locks, where none is removed
            lock.enter_context(disk.locked(folder))
        yield folder


def _copy(shard: pathlib.Path, to: pathlib.Path) -> None:
    """The same files, not twice on the disk, with tables from which may be sampled for ever."""
    to.mkdir()
    try:
        for file in shard.iterdir():
            if file.name != _TABLES:
                os.link(file, to / file.name)  # a run that goes on may remove the original
        records = tf.data.TFRecordDataset(str(shard / _TABLES), _COMPRESSION)
        with tf.io.TFRecordWriter(str(to / _TABLES), _COMPRESSION) as writer:
            for record in records.as_numpy_iterator():
                table = checkpoint_pb2.PriorityTableCheckpoint.FromString(record)
                limits = table.rate_limiter
                limits.min_size_to_sample = 1
                limits.min_diff, limits.max_diff = -sys.float_info.max, sys.float_info.max
                writer.write(table.SerializeToString())
    except (OSError, tf.errors.OpError) as error:
        said = disk.said(error)
        raise CheckpointError(f"The saved replay {shard} cannot be read: {said}.") from None
