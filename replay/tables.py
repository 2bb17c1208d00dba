"""The Reverb tables: how items are stored, sampled, removed and rationed.

| kind        | sampled            | removed      | limited by                                    |
|-------------|--------------------|--------------|-----------------------------------------------|
| prioritized | P(i) ∝ p_i^alpha   | oldest first | `samples_per_insert`, else only by `min_size` |
| uniform     | evenly             | oldest first | the same                                      |
| queue       | in order, once     | when sampled | its size: a full queue stops its writers      |

A table that does not pace its writers accepts every item: a full queue then drops its oldest.
"""

import dataclasses
import math
import sys
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import reverb
import tensorflow as tf
import tree
from acme import specs

from replay.blocks import width
from replay.insistence import wait_for
from replay.layout import BlockLayout, Layout
from replay.structures import Block, Header, Item, Nest, TableSpec

_LONGEST_BLOCK = 40
_KINDS = ("prioritized", "queue", "uniform")


def block_layout(tables: Sequence[TableSpec]) -> BlockLayout:
    """Cuts a stream into blocks as long as the largest divisor, at most 40, of every period.

    Items then begin and end with blocks, and consecutive items share whole ones. Longer blocks
    compress better and cost less each. A block repeats the rows that any table needs before an
    item's first one.

    Where no table's items cross episodes, blocks go by episode as items do, or most items would
    reach into a block more than they fill.

    Args:
      tables: all tables that one stream feeds; at least one.
    """
    common = math.gcd(*(spec.layout.period for spec in tables))
    return BlockLayout(
        length=max(k for k in range(1, _LONGEST_BLOCK + 1) if common % k == 0),
        context=max(spec.layout.context for spec in tables),
        by_episode=not any(spec.layout.crosses_episodes for spec in tables),
    )


def max_blocks(layout: Layout, length: int) -> int:
    """The most blocks of `length` rows that one item touches, its burn-in included.

    Items that cross episodes all begin at one place in their blocks, others anywhere.
    """
    rows = layout.burn_in + layout.length
    offset = -layout.burn_in % length if layout.crosses_episodes else length - 1
    return (offset + rows - 1) // length + 1


def shard_of(spec: TableSpec, shard: int, num_shards: int) -> TableSpec:
    """The part of a table that one of several servers holds.

    Its sizes are divided, so that the shards together hold what one table would; its rate is one of
    samples to inserts and stays. Every shard waits for at least one item.

    Args:
      spec: the whole table.
      shard: index of the server, in 0..`num_shards` - 1.

    Raises:
      ValueError: if nothing would be left for some.
    """
    if spec.max_size < num_shards:
        raise ValueError(
            f"Table {spec.name!r} holds {spec.max_size} items: too few for {num_shards} shards."
        )

    def part(size: int) -> int:
        return size // num_shards + (shard < size % num_shards)

    return dataclasses.replace(
        spec, max_size=part(spec.max_size), min_size=max(1, part(spec.min_size))
    )


def num_items(servers: Sequence[reverb.Client], timeout: int | None = None) -> int:
    """Items in all tables of all servers; arguments and errors as for `fills`."""
    return sum(fill.items for fill in fills(servers, timeout).values())


class Fill(NamedTuple):
    """The fill of a table, all its shards together."""

    items: int
    min_size: int  # nothing is sampled below it; 0 for a queue, which gives any item


def fills(servers: Sequence[reverb.Client], timeout: int | None = None) -> dict[str, Fill]:
    """The fill of each table, by name.

    Args:
      timeout: seconds that each server may take to answer; None waits, and says so.

    Raises:
      reverb.errors.ReverbError, RuntimeError: when one does not answer.
    """
    found: dict[str, Fill] = {}
    for server in servers:
        info = wait_for(server) if timeout is None else server.server_info(timeout=timeout)
        for name, table in info.items():
            items, min_size = found.get(name, (0, 0))
            is_queue = table.max_times_sampled == 1
            wanted = 0 if is_queue else table.rate_limiter_info.min_size_to_sample
            found[name] = Fill(items + table.current_size, min_size + wanted)
    return found


def signature(
    environment_spec: specs.EnvironmentSpec, core_state: Nest, blocks: BlockLayout
) -> Item:
    """The shapes and types of a stored item, its blocks' observations compressed.

    Args:
      environment_spec: of one environment, with single frames as its observation.
      core_state: the reader's recurrent state for one environment: anything with shape and dtype.
    """

    def strings(leaf: specs.Array) -> tf.TensorSpec:
        shape = (blocks.num_rows, *leaf.shape)
        return tf.TensorSpec([None], tf.string, name=f"{leaf.dtype}{shape}")  # not told else

    block = Block(
        observation=tree.map_structure(strings, environment_spec.observations),
        records=tf.TensorSpec([None, blocks.num_rows, width(environment_spec.actions)], np.int32),
    )
    header = tf.TensorSpec([len(Header._fields)], np.int64)
    state = tree.map_structure(lambda leaf: tf.TensorSpec(leaf.shape, leaf.dtype), core_state)
    return Item(blocks=block, header=header, core_state=state)


def make_tables(
    tables: Sequence[TableSpec],
    environment_spec: specs.EnvironmentSpec,
    core_states: Mapping[str, Nest],
    blocks: BlockLayout,
) -> list[reverb.Table]:
    """Makes the tables of one replay server.

    Args:
      environment_spec: of one environment, with single frames as its observation.
      core_states: by table name, the reader's recurrent state for one environment; () without a
        core.

    Raises:
      ValueError: if two tables have one name, or a size, ratio or exponent makes no sense.
    """
    names = [spec.name for spec in tables]
    if len(set(names)) < len(names):
        raise ValueError(f"Every table needs its own name, got {names}.")
    return [
        _make_table(spec, signature(environment_spec, core_states[spec.name], blocks))
        for spec in tables
    ]


def _make_table(spec: TableSpec, item: Item) -> reverb.Table:
    _check(spec)
    if spec.kind == "queue" and spec.paces:
        return reverb.Table.queue(spec.name, spec.max_size, signature=item)
    samplers = {
        "prioritized": lambda: reverb.selectors.Prioritized(spec.priority_exponent),
        "uniform": reverb.selectors.Uniform,
        "queue": reverb.selectors.Fifo,
    }
    return reverb.Table(
        name=spec.name,
        sampler=samplers[spec.kind](),
        remover=reverb.selectors.Fifo(),
        max_size=spec.max_size,
        rate_limiter=_rate_limiter(spec),
        max_times_sampled=1 if spec.kind == "queue" else 0,
        signature=item,
    )


def _rate_limiter(spec: TableSpec) -> reverb.rate_limiters.RateLimiter:
    if spec.samples_per_insert is None:
        return reverb.rate_limiters.MinSize(spec.min_size)
    # Reverb's least possible buffer lets a writer and a reader that move in bursts (N items, one
    # batch) wait for each other in turn, so either side may run ahead by a tenth of what the table
    # holds at first.
    least = 2 * max(1.0, spec.samples_per_insert)
    tenth = 0.1 * spec.samples_per_insert * spec.min_size
    buffer = max(least, tenth)
    middle = spec.samples_per_insert * spec.min_size
    return reverb.rate_limiters.RateLimiter(
        samples_per_insert=spec.samples_per_insert,
        min_size_to_sample=spec.min_size,
        min_diff=middle - buffer if spec.waits else -sys.float_info.max,
        max_diff=middle + buffer if spec.paces else sys.float_info.max,
    )


def _check(spec: TableSpec) -> None:
    ratio = spec.samples_per_insert
    wrong = {
        f"kind must be one of {_KINDS}, got {spec.kind!r}": spec.kind not in _KINDS,
        f"max_size must be at least 1, got {spec.max_size}": spec.max_size < 1,
        f"min_size must lie between 1 and max_size ({spec.max_size}), got {spec.min_size}": (
            not 1 <= spec.min_size <= spec.max_size
        ),
        f"samples_per_insert must be positive or None, got {ratio}": (
            ratio is not None and ratio <= 0
        ),
        f"a queue hands out each item once, so samples_per_insert must be None, got {ratio}": (
            ratio is not None and spec.kind == "queue"
        ),
        f"priority_exponent must not be negative, got {spec.priority_exponent}": (
            spec.priority_exponent < 0
        ),
    }
    for sentence, is_so in wrong.items():
        if is_so:
            raise ValueError(f"Table {spec.name!r}: {sentence}.")
