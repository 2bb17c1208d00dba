"""Replay servers full of recorded steps and clients of a learner, in processes of their own.

Each process is forked from one that has imported this module: TensorFlow takes a new interpreter
seconds to import, and threads do not survive a fork of this process.
"""

import contextlib
import dataclasses
import functools
import itertools
import math
import multiprocessing
import multiprocessing.pool
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any

import numpy as np
import psutil
import reverb
import tensorflow as tf
import tree
from acme import specs

from benchmarks.run import cpu_seconds
from benchmarks.subject import GAME, Subject
from courier import credentials
from courier.client import Client
from courier.server import Server
from environments import suites
from replay import dataset, tables
from replay.layout import BlockLayout
from replay.structures import FIRST, MID, Nest, Step, TableSpec
from replay.writer import SequenceWriter

NUM_ENVIRONMENTS = 32
_ROWS = 200  # of Pong's first points; they compress like any others
_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload([__name__])


def _start(target: Callable[..., None], *arguments: Any) -> tuple[BaseProcess, Connection]:
    """Calls a function in a new process with one end of a pipe; that ends when the other does."""
    ours, theirs = multiprocessing.Pipe()
    process = _CONTEXT.Process(target=target, args=(theirs, *arguments), daemon=True)
    process.start()
    theirs.close()
    return process, ours


@functools.cache
def _recorded(num_actions: int) -> list[Step]:
    """The first rows of environments that play at random: written again, they cost no playing."""
    environments = suites.make(GAME, NUM_ENVIRONMENTS, seed=0)
    rng = np.random.default_rng(0)
    observation, info = environments.reset()
    steps = []
    for _ in range(_ROWS):
        action = rng.integers(num_actions, size=NUM_ENVIRONMENTS, dtype=np.int32)
        following, reward, _, _, next_info = environments.step(action)
        steps.append(
            Step(
                observation=observation.copy(),
                step_type=np.full(NUM_ENVIRONMENTS, MID, np.uint8),
                lives=info["lives"].astype(np.uint8),
                action=action,
                log_probability=np.full(NUM_ENVIRONMENTS, -np.log(num_actions), np.float32),
                reward=reward,
                continuation=np.ones(NUM_ENVIRONMENTS, np.float32),
            )
        )
        observation, info = following, next_info
    environments.close()
    return steps


def _rows(num_actions: int) -> Iterator[Step]:
    """One endless episode: the recording over and over, FIRST at its very beginning only."""
    first, *others = _recorded(num_actions)
    yield first._replace(step_type=np.full_like(first.step_type, FIRST))
    yield from others
    yield from itertools.cycle([first, *others])


def check(subject: Subject, num_shards: int) -> None:
    """Checks that an agent's batches can be sampled from so many servers.

    Raises:
      ValueError: its batches cannot be divided evenly among so many servers.
    """
    dataset.check_shares(subject.agent.tables[:1], [subject.agent.batch_size], num_shards)


class LocalReplay(contextlib.AbstractContextManager["LocalReplay"]):
    """An agent's first table on one server or several. A context manager: its end ends them.

    Nothing limits its rates, and it is never full. In a queue's place is a uniform table, which
    gives an item more than once.

    Raises:
      ValueError: as `check`.
    """

    def __init__(self, subject: Subject, num_shards: int = 1) -> None:
        check(subject, num_shards)
        self._agent, self._spec = subject.agent, subject.spec
        table = subject.agent.tables[0]
        self.table = dataclasses.replace(
            table,
            kind="uniform" if table.kind == "queue" else table.kind,
            min_size=1,
            max_size=10_000_000,
            samples_per_insert=None,
        )
        self._blocks = tables.block_layout([self.table])
        state = self._agent.make_network(self._spec).initial_state(NUM_ENVIRONMENTS)
        self._core_state: Nest = tree.map_structure(np.asarray, state)
        self._core_spec = tree.map_structure(lambda x: tf.TensorSpec(x.shape[1:], x.dtype), state)
        told = ([self.table], self._spec, {self.table.name: self._core_spec}, self._blocks)
        self._servers = [_start(_serve_replay, *told) for _ in range(num_shards)]
        self.addresses = [f"localhost:{connection.recv()}" for _, connection in self._servers]

    def __exit__(self, *_: object) -> None:
        for process, connection in self._servers:
            connection.close()
            process.join()

    def clients(self) -> list[reverb.Client]:
        """One for each server."""
        return [reverb.Client(address) for address in self.addresses]

    def num_items(self) -> int:
        """The number of items on all servers."""
        return tables.num_items(self.clients())

    def resident_bytes(self) -> int:
        """The memory of all servers."""
        return sum(psutil.Process(server.pid).memory_info().rss for server, _ in self._servers)

    def cpu_seconds(self) -> float:
        """Seconds of a core that all servers have used."""
        return sum(map(cpu_seconds, (psutil.Process(server.pid) for server, _ in self._servers)))

    def fill(self, num_items: int) -> float:
        """Writes about so many items, from this one thread; returns the seconds that took."""
        num_actions = self._spec.actions.num_values
        _recorded(num_actions)
        writers = [self._make_writer(client) for client in self.clients()]
        per_row = NUM_ENVIRONMENTS * len(writers) / self.table.layout.period
        num_rows = self.table.layout.length + math.ceil(num_items / per_row)
        started = time.perf_counter()
        for step in itertools.islice(_rows(num_actions), num_rows):
            for writer in writers:
                writer.append(step, core_state=self._core_state, values={}, learner_step=0)
        for writer in writers:
            writer.flush()
        seconds = time.perf_counter() - started
        for writer in writers:
            writer.close()
        return seconds

    def batches(self) -> tf.data.Dataset:
        """The agent's learner's dataset: as many items from each of the servers."""
        return dataset.make_dataset(
            self.addresses,
            [self.table],
            self._spec,
            self._core_spec,
            self._blocks,
            [self._agent.batch_size],
        )

    def _make_writer(self, client: reverb.Client) -> SequenceWriter:
        return SequenceWriter(
            client,
            [self.table],
            blocks=self._blocks,
            actors=np.arange(NUM_ENVIRONMENTS),
            tasks=np.zeros(NUM_ENVIRONMENTS, np.int64),
            agent=0,
        )


def _serve_replay(
    connection: Connection,
    table_specs: Sequence[TableSpec],
    spec: specs.EnvironmentSpec,
    core_states: Mapping[str, Nest],
    blocks: BlockLayout,
) -> None:
    server = reverb.Server(tables.make_tables(table_specs, spec, core_states, blocks))
    connection.send(server.port)
    with contextlib.suppress(EOFError):
        connection.recv()  # nothing ever comes but the end
    server.stop()


class Clients:
    """A Courier server here, and so many of its clients in a process of their own.

    They are connected, and each has fetched once, when the context is entered.

    Args:
      get_variables: a learner's.
      number: of clients.
    """

    def __init__(
        self, get_variables: Callable[[list[str]], list[list[np.ndarray]]], number: int
    ) -> None:
        self._server = Server()
        self._server.BindHandler("get_variables", get_variables)
        self._number = number
        self._begun = 0

    def __enter__(self) -> "Clients":
        self._server.Start()
        address = f"localhost:{self._server.port}"
        told = (address, self._number, credentials.secret())
        self._process, self._connection = _start(_fetch_when_asked, *told)
        self.seconds()
        return self

    def __exit__(self, *_: Any) -> None:
        self._connection.close()
        self._process.join()
        self._server.Stop()
        self._server.Join()

    def begin(self, fetches: int) -> None:
        """Asks for so many fetches, which the clients share; does not wait for them."""
        self._connection.send(fetches)
        self._begun += 1

    def wait(self) -> float:
        """Waits for all fetches; returns the processor time that the clients have taken so far."""
        seconds = 0.0
        for _ in range(self._begun):
            seconds = self._connection.recv()
        self._begun = 0
        return seconds

    def seconds(self) -> float:
        """The processor time that the clients have taken so far."""
        self.begin(0)
        return self.wait()


def _fetch_when_asked(connection: Connection, address: str, number: int, secret: str) -> None:
    """The clients' process: so many fetches for each message, answered with its seconds so far."""
    credentials.use(secret)
    clients = [Client(address) for _ in range(number)]
    turns = itertools.cycle(clients)
    # Nothing more ever comes once the other end is closed.
    with contextlib.suppress(EOFError), multiprocessing.pool.ThreadPool(number) as pool:
        pool.map(_fetch, clients)
        while True:
            pool.map(_fetch, itertools.islice(turns, connection.recv()))
            connection.send(time.process_time())


def _fetch(client: Client) -> None:
    client.get_variables(["policy"])
