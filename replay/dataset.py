"""Items -> one time-major `Batch`: padded, masked, each frame once. Here and nowhere else.

A batch's row t is stream row `start - padding + t` of its item; the item's rows may be anywhere in
its blocks, which repeat the rows before and after their own:

    item in blocks   . . c c s s s s s s s e . .     c: context, s: steps, e: the row after them
    batch                x x s s s s s s s e x       x: padding, zero in every field

Observations are decompressed to their places (`replay.decoding`), images with the k - 1 frames
before the first row. The rest is one gather per field, by row numbers made from the header. After
an item's blocks stands one that begins with a row of zeros: padding is read from that.

A table may be spread over several servers, its shards. Each gives the same part of every batch.
"""

import os
from collections.abc import Callable, Sequence

import reverb
import tensorflow as tf
import tree
from acme import specs

from replay.blocks import unpack
from replay.decoding import Columns, decoded
from replay.frames import is_image
from replay.layout import BlockLayout, Layout
from replay.structures import (
    FIRST,
    LAST,
    NO_ACTION,
    Array,
    Batch,
    Block,
    Header,
    Item,
    Nest,
    NetworkInput,
    Record,
    TableSpec,
)
from replay.tables import max_blocks, signature

_ROWS_OF_A_CALL = 1_000  # R2D2's batch has 7,680, IMPALA's 640


def make_dataset(
    server_addresses: Sequence[str],
    tables: Sequence[TableSpec],
    environment_spec: specs.EnvironmentSpec,
    core_state: Nest,
    blocks: BlockLayout,
    batch_sizes: Sequence[int],
    blend: Callable[[tf.data.Dataset, Item], tf.data.Dataset] = lambda items, item: items,
) -> tf.data.Dataset:
    """Samples the tables of one reader for ever; a batch holds so many items of each of them.

    No more than one batch is requested ahead of need: a batch that waits has old priorities, and a
    queue's items are lost with their reader. One worker reads a queue, to keep its order.

    Args:
      server_addresses: `host:port` of each shard.
      tables: what to sample, all of one layout, with the sizes of all shards together; a batch
        holds their items in this order, and a table's items in the order of the shards.
      environment_spec: of one environment, with single frames as its observation.
      core_state: the tables' reader's recurrent state for one environment; () without a core.
      batch_sizes: items of each table, from all shards together; their sum is B.
      blend: (items of a shard of a table, signature of an item) -> those that are taken in their
        place.

    Returns:
      A dataset of `Batch`.

    Raises:
      ValueError: as `check_shares`, and if the layouts differ.
    """
    num_shards = len(server_addresses)
    check_shares(tables, batch_sizes, num_shards)
    layout = tables[0].layout
    for table in tables:
        if table.layout != layout:
            raise ValueError(
                f"The tables of one batch need one layout; {tables[0].name!r} has {layout}, "
                f"{table.name!r} has {table.layout}."
            )
    item = signature(environment_spec, core_state, blocks)
    num_rows = sum(batch_sizes) * (layout.burn_in + layout.length)
    count = max_blocks(layout, blocks.length) + 1  # and one that begins with zeros
    info = tree.map_structure(lambda _: [], reverb.SampleInfo.tf_dtypes())
    padded = reverb.ReplaySample(info=info, data=_padded_shapes(item, count))
    shares = [size // num_shards for size in batch_sizes]
    samples = []
    for table, share in zip(tables, shares, strict=True):
        items = [
            blend(items_of(address, table.name, item, share), item) for address in server_addresses
        ]
        samples.append(tuple(x.padded_batch(share, padded, drop_remainder=True) for x in items))
    shards = tf.concat([tf.repeat(tf.range(num_shards), share) for share in shares], axis=0)  # [B]

    # No branch here depends on a tensor's value; AutoGraph would look for one, for seconds.
    @tf.autograph.experimental.do_not_convert
    def joined(*parts: tuple[reverb.ReplaySample, ...]) -> Batch:
        whole = _concatenated([_as_one_table(of_shards) for of_shards in parts])
        return to_batch(whole.info, whole.data, shards, layout, blocks, environment_spec)

    batches = tf.data.Dataset.zip(tuple(samples)).map(
        joined, num_parallel_calls=batches_at_a_time(num_rows), deterministic=True
    )
    return batches.prefetch(1)


def batches_at_a_time(num_rows: int) -> int:
    """The number of batches of so many rows that are made in parallel, each by one core.

    Two keep a processor's learner busy. An accelerator learns from R2D2's batches four times as
    fast as a core makes them; small ones would only wait for it and grow old.
    """
    if not tf.config.list_logical_devices("GPU"):
        return 2
    return max(2, min(len(os.sched_getaffinity(0)) // 2, num_rows // _ROWS_OF_A_CALL))


def items_of(server_address: str, table: str, item: Item, at_a_time: int) -> tf.data.Dataset:
    """The items that a server's table samples, requested so many at a time."""
    return reverb.TrajectoryDataset(
        server_address=server_address,
        table=table,
        dtypes=tree.map_structure(lambda leaf: leaf.dtype, item),
        shapes=tree.map_structure(lambda leaf: leaf.shape, item),
        max_in_flight_samples_per_worker=at_a_time,
        num_workers_per_iterator=1,
    )


def _as_one_table(samples: Sequence[reverb.ReplaySample]) -> reverb.ReplaySample:
    """The samples of all shards, as if from one table that holds all of their items.

        P(i) = P_s(i) / S,   N = Σ_s N_s,   for an item i of shard s of S

    A shard gives 1/S of every batch, however many items and whatever priorities it holds.
    """
    table_size = tf.add_n([sample.info.table_size for sample in samples])  # [B / S]
    return _concatenated(
        [
            sample._replace(
                info=sample.info._replace(
                    probability=sample.info.probability / len(samples), table_size=table_size
                )
            )
            for sample in samples
        ]
    )


def _concatenated(samples: Sequence[reverb.ReplaySample]) -> reverb.ReplaySample:
    return tree.map_structure(lambda *leaves: tf.concat(leaves, axis=0), *samples)


def check_shares(tables: Sequence[TableSpec], batch_sizes: Sequence[int], num_shards: int) -> None:
    """Checks that every shard of every table, of all shards' sizes, can give its part of a batch.

    Raises:
      ValueError: if there is no table, or not one batch size of at least 1 for each; if the shards'
        parts would not be equal; or if a queue could never fill its own.
    """
    if not tables or len(tables) != len(batch_sizes):
        raise ValueError(
            f"One table or more is needed, each with its batch size; got {len(tables)} tables and "
            f"{len(batch_sizes)} batch sizes."
        )
    for table, size in zip(tables, batch_sizes, strict=True):
        if size < 1:
            raise ValueError(f"batch_size must be at least 1, got {size}.")
        if size % num_shards:
            raise ValueError(
                f"Each of {num_shards} shards gives as many items of a batch, so table "
                f"{table.name!r} must give a multiple of {num_shards}; got a batch size of {size}."
            )
        share, held = size // num_shards, table.max_size // num_shards
        if table.kind == "queue" and held <= share + 1:
            raise ValueError(
                f"Queue {table.name!r} must hold more than a batch and one item ({share + 1}) in "
                f"each shard, or its writers and its reader wait for each other; got max_size "
                f"{table.max_size} for {num_shards} in all."
            )


def _padded_shapes(item: Item, count: int) -> Item:
    blocks = tree.map_structure(lambda leaf: [count, *leaf.shape[1:]], item.blocks)
    return item._replace(
        blocks=tree.map_structure_up_to(item.blocks, tf.TensorShape, blocks),
        header=item.header.shape,
        core_state=tree.map_structure(lambda leaf: leaf.shape, item.core_state),
    )


def to_batch(
    info: reverb.SampleInfo,
    items: Item,
    shard: Array,
    layout: Layout,
    blocks: BlockLayout,
    environment_spec: specs.EnvironmentSpec,
) -> Batch:
    """Turns B stored items into a learner's batch.

    Args:
      info: `[B]` each, Reverb's record of the samples.
      items: `[B, ...]`; the header is `[B, 7]`, and blocks are padded to one common number, at
        least one more than the longest item's, with blocks that begin with a row of zeros.
      shard: `[B]` int32, the index of each item's server.
    """
    header = Header(*tf.unstack(items.header, axis=-1))
    rows = _Rows(items.blocks, header, blocks)
    num_steps = layout.burn_in + layout.length
    t = tf.range(num_steps + 1, dtype=tf.int64)[:, None]  # [T + 1, 1]
    end = header.padding + header.num_rows
    valid = (t >= header.padding) & (t <= end)  # [T + 1, B]
    acted = ((t >= header.padding) & (t < end))[:-1]  # [T, B]

    def recorded(t: tf.Tensor, wanted: tf.Tensor) -> Record:
        return unpack(rows.gather(items.blocks.records, t, wanted), environment_spec.actions)

    observed, done = recorded(t, valid), recorded(t[:-1], acted)
    first = valid & (observed.step_type == FIRST)
    follows = valid & ~first  # rows that follow another of the same episode
    before = recorded(t - 1, follows)
    previous_action: tf.Tensor = before.action
    if previous_action.dtype.is_integer:  # bounded ones are zero there already
        several = previous_action.shape.rank > 2
        begins = first[..., tf.newaxis] if several else first
        previous_action = tf.where(begins, NO_ACTION, previous_action)
    return Batch(
        inputs=NetworkInput(
            observation=_observations(rows, items, header, layout, environment_spec),
            previous_action=previous_action,
            previous_reward=before.reward,
        ),
        reset=first,
        valid=valid,
        life_lost=observed.lives < before.lives,
        action=done.action,
        log_probability=done.log_probability,
        reward=done.reward,
        continuation=done.continuation,
        mask=tf.cast(acted & (done.step_type != LAST), tf.float32),
        core_state=items.core_state,
        key=info.key,
        shard=shard,
        probability=info.probability,
        table_size=info.table_size,
        learner_step=header.learner_step,
        task=header.task,
        actor=header.actor,
        agent=header.agent,
    )


def _observations(
    rows: "_Rows",
    items: Item,
    header: Header,
    layout: Layout,
    environment_spec: specs.EnvironmentSpec,
) -> Nest:
    """Single frames, from the k - 1 before the first row on; what is no image has the rows."""
    # Of the frames before an item's first row those that are of that row's episode.
    ages = tf.range(layout.frame_stack - 1, dtype=tf.int64)[:, None]
    begins = rows.gather(items.blocks.records, header.padding - ages, True)[..., 0] == FIRST
    older = tf.reduce_sum(tf.math.cumprod(tf.cast(~begins, tf.int64)), axis=0)  # [B]
    last = header.start + header.num_rows

    def read(strings: tf.Tensor, spec: specs.Array) -> tf.Tensor:
        k = layout.frame_stack if is_image(len(spec.shape)) else 1
        shown = Columns(rows.begin - (k - 1), header.start - (older if k > 1 else 0), last)
        num_rows = k + layout.burn_in + layout.length
        return decoded(strings, spec.shape, spec.dtype, shown, rows.layout, num_rows)

    return tree.map_structure(read, items.blocks.observation, environment_spec.observations)


class _Rows:
    """The places of a batch's rows in the blocks of its items."""

    def __init__(self, blocks: Block, header: Header, layout: BlockLayout) -> None:
        self._num_blocks = blocks.records.shape[1]
        self.layout = layout
        # The item's first block's row, its own first one being 0, that is batch row 0.
        self.begin = header.start - header.padding  # [B]
        self._last_block = (header.start + header.num_rows - 1) // layout.length  # [B]

    def gather(self, field: tf.Tensor, t: tf.Tensor, wanted: Array | bool) -> tf.Tensor:
        """The field `[B, num_blocks, rows, *]` at batch rows `t` `[..., 1]`: `[..., B, *]`.

        It is zero where not `wanted` `[..., B]`.
        """
        row = self.begin + t
        # Rows before the first block and after the last one are those blocks' own.
        block = tf.clip_by_value(row // self.layout.length, 0, self._last_block)
        slot = self.layout.context + row - block * self.layout.length
        block = tf.where(wanted, block, self._num_blocks - 1)
        slot = tf.where(wanted, slot, 0)
        item = tf.range(tf.shape(field)[0], dtype=tf.int64)  # [B]
        index = (item * self._num_blocks + block) * field.shape[2] + slot
        return tf.gather(tf.reshape(field, [-1, *field.shape[3:]]), index)
