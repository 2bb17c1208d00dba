"""Clients in another process that fetch the parameters which this process serves."""

import contextlib
import itertools
import multiprocessing
import multiprocessing.pool
import time
from multiprocessing.connection import Connection
from typing import Any, Protocol

import numpy as np

from benchmarks import processes
from courier import credentials
from courier.client import Client
from courier.server import Server


class Source(Protocol):
    """What a learner's node is to those who fetch its parameters."""

    def get_variables(self, names: list[str]) -> list[list[np.ndarray]]: ...


class Clients:
    """A Courier server here, and so many of its clients in a process of their own.

    They are connected, and each has fetched once, when the context is entered.
    """

    def __init__(self, source: Source, number: int) -> None:
        self._server = Server()
        self._server.BindHandler("get_variables", source.get_variables)
        self._number = number
        self._begun = 0

    def __enter__(self) -> "Clients":
        self._server.Start()
        address = f"localhost:{self._server.port}"
        self._connection, theirs = multiprocessing.Pipe()
        self._process = processes.start(_serve, theirs, address, self._number, credentials.secret())
        theirs.close()
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


def _serve(connection: Connection, address: str, number: int, secret: str) -> None:
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
