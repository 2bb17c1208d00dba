"""A replay in the memory of the one process that both acts and learns: no server, port or thread.

`SequenceWriter` writes into it as it does into a Reverb server, and its batches are those that
`replay.dataset` makes of Reverb's samples. Nothing waits here, and a seed decides what is sampled,
which Reverb's selectors do not allow.
"""

import json
import os
import pathlib
import zipfile
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import reverb
import tensorflow as tf
import tree
from acme import specs
from reverb.trajectory_writer import TrajectoryColumn

from replay.blocks import width
from replay.dataset import check_shares, to_batch
from replay.layout import BlockLayout
from replay.structures import Batch, Block, Item, Nest, TableSpec
from replay.tables import max_blocks

_DESCRIPTION, _GENERATOR = "description", "generator"  # entries of a saved file


class _Stored(NamedTuple):
    """One item, whose blocks other items may share."""

    blocks: list[tuple[np.ndarray, ...]]  # of each the leaves of a `Block`, as Reverb's columns
    header: np.ndarray  # [7] int64
    core_state: list[np.ndarray]  # leaves


class _Table:
    """The items of one table: the item of key k is in slot k modulo the table's size."""

    def __init__(self, spec: TableSpec) -> None:
        self.spec = spec
        self.first = self.next = 0  # keys: of the oldest item, and of the next one
        self._items: list[_Stored] = []
        self._weights = np.zeros(1)  # of each slot; P(i) is proportional to it

    def __len__(self) -> int:
        return self.next - self.first

    def insert(self, item: _Stored, priority: float) -> None:
        """Adds an item; the oldest one leaves where there is no room."""
        slot = self.next % self.spec.max_size
        if slot == len(self._items):
            self._items.append(item)
            if slot == len(self._weights):
                self._weights = np.concatenate([self._weights, np.zeros_like(self._weights)])
        self._items[slot] = item
        self._weights[slot] = self._weight(priority)
        self.next += 1
        self.first = max(self.first, self.next - self.spec.max_size)

    def sample(
        self, size: int, generator: np.random.Generator
    ) -> tuple[list[_Stored], reverb.SampleInfo]:
        """Draws items with replacement, or takes the oldest ones out of a queue."""
        count = len(self)
        if self.spec.kind == "queue":
            keys, probability = np.arange(self.first, self.first + size), np.ones(size)
            self.first += size
        else:
            heights = np.cumsum(self._weights[self._slots()])
            if heights[-1] == 0:  # all priorities are; Reverb then samples evenly too
                heights = np.arange(1.0, count + 1)
            drawn = np.searchsorted(heights, generator.random(size) * heights[-1], side="right")
            index = np.minimum(drawn, count - 1)  # a product may be rounded to the whole height
            keys = self.first + index
            probability = np.diff(heights, prepend=0.0)[index] / heights[-1]
        info = reverb.SampleInfo(
            key=keys.astype(np.uint64),
            probability=probability,
            table_size=np.full(size, count, np.int64),
            priority=None,  # nobody reads these two
            times_sampled=None,
        )
        return [self._items[key % self.spec.max_size] for key in keys], info

    def update(self, keys: np.ndarray, priorities: np.ndarray) -> None:
        """Changes the priorities of those items that are still there."""
        there = keys >= self.first
        slots = keys[there].astype(np.int64) % self.spec.max_size
        self._weights[slots] = self._weight(priorities[there])

    def content(self) -> tuple[list[_Stored], np.ndarray]:
        """All items from the oldest on, and their weights."""
        slots = self._slots()
        return [self._items[slot] for slot in slots], self._weights[slots]

    def replace(self, items: Sequence[_Stored], weights: np.ndarray) -> None:
        """Has these items, from the oldest on, in the place of all others."""
        self.first, self.next = 0, len(items)
        self._items, self._weights = list(items), np.append(weights, 0.0)

    def _slots(self) -> np.ndarray:
        """Where the items are, from the oldest on."""
        return np.arange(self.first, self.next) % self.spec.max_size

    def _weight(self, priority: Any) -> Any:
        exponent = self.spec.priority_exponent if self.spec.kind == "prioritized" else 0.0
        return np.float64(priority) ** exponent


class InMemoryReplay:
    """The tables of one agent, written and read by one thread.

    Args:
      tables: what the agent reads, all of one layout.
      environment_spec: of one environment, with single frames as its observation.
      core_state: the agent's recurrent state for one environment; () without a core.
      blocks: how the stream is cut, by `block_layout` of these tables.
      batch_sizes: items of each table in a batch.
      seed: of what is sampled.

    Raises:
      ValueError: as `replay.dataset.check_shares`.
    """

    def __init__(
        self,
        tables: Sequence[TableSpec],
        environment_spec: specs.EnvironmentSpec,
        core_state: Nest,
        blocks: BlockLayout,
        batch_sizes: Sequence[int],
        *,
        seed: int,
    ) -> None:
        check_shares(tables, batch_sizes, num_shards=1)
        self._tables = {spec.name: _Table(spec) for spec in tables}
        self._first = self._tables[tables[0].name]
        self._batch_sizes = batch_sizes
        self._generator = np.random.default_rng(seed)
        self._layout, self._blocks = tables[0].layout, blocks
        self._core_state = core_state
        self._spec = environment_spec
        self._num_blocks = max_blocks(self._layout, blocks.length) + 1  # one begins with zeros
        self._assemble = tf.function(self._to_batch, autograph=False)

    def trajectory_writer(self, num_keep_alive_refs: int) -> "_Writer":
        """What `SequenceWriter` takes of a client: all that it refers to stays alive here."""
        del num_keep_alive_refs
        return _Writer(self)

    def insert(self, table: str, priority: float, item: _Stored) -> None:
        """Adds an item to a table."""
        self._tables[table].insert(item, priority)

    def num_items(self) -> int:
        """Items in the first table."""
        return len(self._first)

    def has_batch(self) -> bool:
        """Whether there is a batch: of a queue as many items as it takes, of others one."""
        return all(
            len(table) >= (size if table.spec.kind == "queue" else 1)
            for table, size in zip(self._tables.values(), self._batch_sizes, strict=True)
        )

    def sample(self) -> Batch:
        """The next batch, where there is one."""
        parts = zip(self._tables.values(), self._batch_sizes, strict=True)
        drawn = [table.sample(size, self._generator) for table, size in parts]
        items = [item for part, _ in drawn for item in part]
        info = tree.map_structure(
            lambda *x: None if x[0] is None else tf.constant(np.concatenate(x)),
            *(info for _, info in drawn),
        )
        batch: Batch = self._assemble(info, tree.map_structure(tf.constant, self._padded(items)))
        return batch

    def update(self, shard: np.ndarray, key: np.ndarray, priority: np.ndarray) -> None:
        """Changes priorities in the first table; arguments as for `priority_updater`."""
        del shard
        self._first.update(key, priority)

    def save(self, path: pathlib.Path, **more: int) -> None:
        """Writes all items into one file, in the place of one that is there.

        Args:
          path: ends with `.npz`.
          more: numbers that `load` is to return.
        """
        stored = [item for table in self._tables.values() for item in table.content()[0]]
        every = {id(block[-1]): block for item in stored for block in item.blocks}
        index = {key: i for i, key in enumerate(every)}
        arrays: dict[str, Any] = {name: np.asarray(value) for name, value in more.items()}
        arrays[_DESCRIPTION] = np.asarray(self._description())
        arrays[_GENERATOR] = np.asarray(json.dumps(self._generator.bit_generator.state))
        for j, column in enumerate(zip(*every.values(), strict=True)):
            if column[0].dtype == object:
                strings = [cell.item() for cell in column]
                arrays[f"sizes/{j}"] = np.array([len(string) for string in strings])
                column = [np.frombuffer(b"".join(strings), np.uint8)]
            arrays[f"blocks/{j}"] = np.stack(column)
        for t, table in enumerate(self._tables.values()):
            items, arrays[f"weights/{t}"] = table.content()
            if not items:
                continue
            arrays[f"counts/{t}"] = np.array([len(item.blocks) for item in items])
            arrays[f"index/{t}"] = np.array(
                [index[id(b[-1])] for item in items for b in item.blocks]
            )
            arrays[f"header/{t}"] = np.stack([item.header for item in items])
            for k, leaves in enumerate(zip(*(item.core_state for item in items), strict=True)):
                arrays[f"core_state/{t}/{k}"] = np.stack(leaves)
        new = path.with_name(f"{path.name}.new.npz")
        try:
            np.savez(new, **arrays)
            os.replace(new, path)
        finally:
            new.unlink(missing_ok=True)

    def load(self, path: pathlib.Path) -> Mapping[str, np.ndarray]:
        """Has the items of a file that `save` wrote in the place of all others.

        Returns:
          All that is in the file, by name.

        Raises:
          ValueError: the file is damaged, or of other tables or another environment.
          OSError: it cannot be read.
        """
        try:
            with np.load(path, allow_pickle=False) as file:
                arrays = dict(file)
            if (found := str(arrays[_DESCRIPTION])) != self._description():
                raise ValueError(f"it is of {found}, and what is wanted {self._description()}.")
            state = json.loads(str(arrays[_GENERATOR]))
            loaded = [self._loaded(arrays, t) for t in range(len(self._tables))]
        except (KeyError, IndexError, ValueError, EOFError, zipfile.BadZipFile) as error:
            raise ValueError(f"{path} cannot be this agent's replay: {error}") from None
        for table, (items, weights) in zip(self._tables.values(), loaded, strict=True):
            table.replace(items, weights)
        self._generator.bit_generator.state = state
        return arrays

    def _loaded(self, arrays: Mapping[str, np.ndarray], t: int) -> tuple[list[_Stored], np.ndarray]:
        weights = arrays[f"weights/{t}"]
        if not len(weights):
            return [], weights
        columns = []
        for j in range(sum(name.startswith("blocks/") for name in arrays)):
            column: Any = arrays[f"blocks/{j}"]
            if f"sizes/{j}" in arrays:
                ends = np.cumsum(arrays[f"sizes/{j}"])
                whole = column[0].tobytes()
                begins = ends - arrays[f"sizes/{j}"]
                column = [np.array(whole[a:b], object) for a, b in zip(begins, ends, strict=True)]
            columns.append(column)
        blocks = list(zip(*columns, strict=True))
        index = arrays[f"index/{t}"]
        stops = np.cumsum(arrays[f"counts/{t}"])
        states = [arrays[f"core_state/{t}/{k}"] for k in range(len(tree.flatten(self._core_state)))]
        items = [
            _Stored(
                [blocks[b] for b in index[stop - count : stop]],
                arrays[f"header/{t}"][i],
                [leaf[i] for leaf in states],
            )
            for i, (count, stop) in enumerate(zip(arrays[f"counts/{t}"], stops, strict=True))
        ]
        return items, weights

    def _description(self) -> str:
        """What a file must agree in to be read, and what a reader is told where it does not."""
        tables = [(t.spec.name, t.spec.kind, t.spec.max_size) for t in self._tables.values()]
        state = [(x.shape, str(x.dtype)) for x in tree.flatten(self._core_state)]
        seen = [(x.shape, str(x.dtype)) for x in tree.flatten(self._spec.observations)]
        acted = (self._spec.actions.shape, str(self._spec.actions.dtype))
        return str((tables, self._layout, self._blocks, state, seen, acted))

    def _padded(self, items: Sequence[_Stored]) -> Item:
        """The items `[B, ...]`, blocks padded to one number as `to_batch` wants them."""
        observation = tree.map_structure(
            lambda _: np.full((len(items), self._num_blocks), b"", object), self._spec.observations
        )
        rows = (self._blocks.num_rows, width(self._spec.actions))
        records = np.zeros((len(items), self._num_blocks, *rows), np.int32)
        blocks = Block(observation, records)
        columns = tree.flatten(blocks)
        for b, item in enumerate(items):
            for m, leaves in enumerate(item.blocks):
                for column, leaf in zip(columns, leaves, strict=True):
                    column[b, m] = leaf[()]  # of a string its bytes
        state = [np.stack(x) for x in zip(*(item.core_state for item in items), strict=True)]
        return Item(
            blocks=blocks,
            header=np.stack([item.header for item in items]),
            core_state=tree.unflatten_as(self._core_state, state),
        )

    def _to_batch(self, info: reverb.SampleInfo, items: Item) -> Batch:
        shard = tf.zeros(items.header.shape[:1], tf.int32)
        return to_batch(info, items, shard, self._layout, self._blocks, self._spec)


class _Writer:
    """As much of a Reverb `TrajectoryWriter` as `SequenceWriter` uses. Its cells are arrays."""

    def __init__(self, replay: InMemoryReplay) -> None:
        self._replay = replay
        self.history: dict[str, list[list[np.ndarray]]] = {}  # the newest cell of each column

    def configure(self, path: Any, **how: int) -> None:
        """Chunks and how long they are kept are no matter here."""

    def append(self, data: Mapping[str, np.ndarray]) -> None:
        self.history.update({name: [[np.array(cell)]] for name, cell in data.items()})

    def create_item(self, table: str, priority: float, columns: Sequence[TrajectoryColumn]) -> None:
        several = [list(column) for column in columns if not column.is_squeezed]
        header, *state = [next(iter(column)) for column in columns if column.is_squeezed]
        item = _Stored(list(zip(*several, strict=True)), header, state)
        self._replay.insert(table, priority, item)

    def flush(self, pending: int, timeout_ms: int) -> None:
        """Nothing is ever on its way."""

    def close(self) -> None:
        """Nothing is to be closed."""
