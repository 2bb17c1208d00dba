"""Replay servers in processes of their own, as a run has them, full of recorded steps."""

import contextlib
import dataclasses
import itertools
import math
import multiprocessing
import time
from collections.abc import Mapping, Sequence
from multiprocessing.connection import Connection
from typing import Any

import numpy as np
import psutil
import reverb
import tensorflow as tf
import tree
from acme import specs

from benchmarks import processes
from benchmarks.recording import NUM_ENVIRONMENTS, recorded
from benchmarks.subject import Subject
from replay import dataset, tables
from replay.blocks import decompressed
from replay.layout import BlockLayout
from replay.structures import Block, Nest, TableSpec
from replay.writer import SequenceWriter


def check(subject: Subject, num_shards: int) -> None:
    """Checks that an agent's batches can be sampled from so many servers.

    Raises:
      ValueError: where the agent reads a queue, of which nothing can be sampled twice, or a batch
        cannot be taken from so many servers alike.
    """
    table = subject.agent.tables[0]
    if table.kind != "prioritized":
        raise ValueError(
            f"A prioritized table is needed, but --agent={subject.agent.name} reads a {table.kind}."
        )
    dataset.check_shares([table], [subject.agent.batch_size], num_shards)


class LocalReplay:
    """An agent's prioritized table on one server or several. A context manager: its end ends them.

    Nothing limits its rates, and it is never full.

    Args:
      subject: whose table.
      num_shards: servers.

    Raises:
      ValueError: as `check`.
    """

    def __init__(self, subject: Subject, num_shards: int = 1) -> None:
        check(subject, num_shards)
        self._agent, self._spec = subject.agent, subject.spec
        self.table = _unlimited(subject.agent.tables[0])
        self._blocks = tables.block_layout([self.table])
        state = self._agent.make_network(self._spec).initial_state(NUM_ENVIRONMENTS)
        self._core_state: Nest = tree.map_structure(np.asarray, state)
        self._core_spec = tree.map_structure(lambda x: tf.TensorSpec(x.shape[1:], x.dtype), state)
        arguments = ([self.table], self._spec, {self.table.name: self._core_spec})
        self._servers = [_Server(*arguments, self._blocks) for _ in range(num_shards)]

    def __enter__(self) -> "LocalReplay":
        return self

    def __exit__(self, *_: object) -> None:
        for server in self._servers:
            server.close()

    @property
    def addresses(self) -> list[str]:
        """One for each server."""
        return [server.address for server in self._servers]

    def clients(self) -> list[reverb.Client]:
        """One for each server."""
        return [reverb.Client(address) for address in self.addresses]

    def num_items(self) -> int:
        """That all servers hold together."""
        return tables.num_items(self.clients())

    def resident_bytes(self) -> int:
        """Memory of all servers together."""
        return sum(server.resident_bytes() for server in self._servers)

    def cpu_seconds(self) -> float:
        """Seconds of a core that all servers have used together."""
        return sum(server.cpu_seconds() for server in self._servers)

    def fill(self, num_items: int) -> float:
        """Writes about so many items, from this one thread; returns the seconds that took."""
        recording = recorded(self._spec.actions.num_values)
        writers = [self._make_writer(client) for client in self.clients()]
        per_row = NUM_ENVIRONMENTS * len(writers) / self.table.layout.period
        num_rows = self.table.layout.length + math.ceil(num_items / per_row)
        started = time.perf_counter()
        for step in itertools.islice(recording.rows(), num_rows):
            for writer in writers:
                writer.append(step, core_state=self._core_state, values={}, learner_step=0)
        for writer in writers:
            writer.flush()
        seconds = time.perf_counter() - started
        for writer in writers:
            writer.close()
        return seconds

    def batches(self) -> tf.data.Dataset:
        """What the agent's learner reads: as many items from each of the servers."""
        return dataset.make_dataset(
            self.addresses,
            [self.table],
            self._spec,
            self._core_spec,
            self._blocks,
            [self._agent.batch_size],
        )

    def decompressed(self, blocks: Block) -> Block:
        """An item's blocks, as `replay.blocks.decompressed`."""
        return decompressed(blocks, self._spec, self._blocks)

    def _make_writer(self, client: reverb.Client) -> SequenceWriter:
        return SequenceWriter(
            client,
            [self.table],
            blocks=self._blocks,
            actors=np.arange(NUM_ENVIRONMENTS),
            tasks=np.zeros(NUM_ENVIRONMENTS, np.int64),
            agent=0,
        )


class _Server:
    """One server's process."""

    def __init__(self, *arguments: Any) -> None:
        self._connection, theirs = multiprocessing.Pipe()
        self._process = processes.start(_serve, theirs, *arguments)
        theirs.close()
        self.address = f"localhost:{self._connection.recv()}"

    def resident_bytes(self) -> int:
        return int(psutil.Process(self._process.pid).memory_info().rss)

    def cpu_seconds(self) -> float:
        times = psutil.Process(self._process.pid).cpu_times()
        return float(times.user + times.system)

    def close(self) -> None:
        self._connection.close()
        self._process.join()


def _serve(
    connection: Connection,
    table_specs: Sequence[TableSpec],
    spec: specs.EnvironmentSpec,
    core_states: Mapping[str, Nest],
    blocks: BlockLayout,
) -> None:
    made = tables.make_tables(table_specs, spec, core_states, blocks)
    server = reverb.Server(made)
    connection.send(server.port)
    with contextlib.suppress(EOFError):
        connection.recv()  # nothing ever comes but the end
    server.stop()


def _unlimited(table: TableSpec) -> TableSpec:
    return dataclasses.replace(table, min_size=1, max_size=10_000_000, samples_per_insert=None)
