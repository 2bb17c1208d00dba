"""Servers that go away and come back: calls are made again, writers and the reader go on."""

import contextlib
import pathlib
import re
import socket
import threading
import time
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any
from unittest import mock

import numpy as np
import portpicker
import psutil
import pytest
import reverb

from replay import dataset, insistence, tables
from replay.insistence import ASK_SECONDS, Watch, insist
from replay.priority_updater import PriorityUpdater
from replay.writer import SequenceWriter, WriterStopped
from tests.patience import PATIENCE, wait_for
from tests.replay.shard_process import BLOCKS, TABLE, ShardProcess
from tests.replay.streams import CORE_STATE, append, environment_spec, step_types, stream


def _server(port: int) -> reverb.Server:
    return reverb.Server([reverb.Table.queue("queue", 10)], port=port)


def test_a_server_that_went_away_is_waited_for(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(insistence, "ASK_SECONDS", 1)
    port = portpicker.pick_unused_port()
    client = reverb.Client(f"localhost:{port}")
    servers = [_server(port)]
    client.server_info()
    servers.pop().stop()
    said = ""

    def is_told_of_twice() -> bool:
        nonlocal said
        said += capsys.readouterr().out
        return said.count("\n") >= 2

    def serve_late() -> None:
        wait_for(is_told_of_twice)
        servers.append(_server(port))

    late = threading.Thread(target=serve_late)
    late.start()
    assert insist(client, lambda: client.mutate_priorities("queue", {1: 2.0})) is None
    late.join()
    servers[0].stop()
    gone, away, *_ = said.splitlines()
    assert gone.startswith(f"Replay at localhost:{port} is gone")
    assert re.fullmatch(rf"Replay at localhost:{port} does not answer \(\d+ s\)\.", away)


def test_who_waits_long_says_who_is_away_and_has_connections_probed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Other connections are left alone. A stream does not hear that its server has given it up."""
    now = 0.0
    clock = SimpleNamespace(monotonic=lambda: now, sleep=lambda _: None)
    monkeypatch.setattr(insistence, "time", clock)
    awaited, other = (_server(portpicker.pick_unused_port()) for _ in range(2))
    away = portpicker.pick_unused_port()
    clients = [reverb.Client(f"localhost:{port}") for port in (awaited.port, away, other.port)]
    clients[0].server_info()
    clients[2].server_info()
    ask = insistence._ask

    def ask_patiently(client: reverb.Client, seconds: int) -> dict[str, Any] | None:
        """Who is there answers, on a busy machine not within a second."""
        return ask(client, seconds if client is clients[1] else int(PATIENCE))

    monkeypatch.setattr(insistence, "_ask", ask_patiently)
    watch = Watch(clients[:2])
    watch.wait()
    watch.wait()
    assert _probed(awaited.port) == _probed(other.port) == {0}
    assert capsys.readouterr().out == ""
    now = ASK_SECONDS
    watch.wait()
    watch.wait()
    assert (_probed(awaited.port), _probed(other.port)) == ({1}, {0})
    (said,) = capsys.readouterr().out.splitlines()
    assert said.startswith(f"Replay at localhost:{away} does not answer (")
    watch.over()
    watch.wait()
    assert capsys.readouterr().out == ""
    for server in (awaited, other):
        server.stop()


def _probed(port: int) -> set[int]:
    """The keep-alive options of this process's connections to a server."""
    found = set()
    for connection in psutil.Process().net_connections("tcp"):
        if connection.raddr and connection.raddr.port == port:
            with socket.fromfd(connection.fd, connection.family, connection.type) as ours:
                found.add(ours.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE))
    return found


def test_what_a_server_refuses_is_an_error() -> None:
    server = _server(portpicker.pick_unused_port())
    client = server.localhost_client()
    with pytest.raises(RuntimeError, match="other was not found"):
        insist(client, lambda: client.mutate_priorities("other", {1: 2.0}))
    server.stop()


@pytest.mark.parametrize(
    ("outcomes", "result", "count"),
    [
        (["first", "second"], "first", 1),
        ([RuntimeError("Socket closed"), "second", "third"], "second", 2),
        ([RuntimeError("Socket closed"), RuntimeError("no"), "third"], None, 2),
    ],
)
def test_a_call_that_succeeds_is_made_once_and_another_twice_at_most(
    outcomes: list[Any], result: str | None, count: int
) -> None:
    server = _server(portpicker.pick_unused_port())
    call = mock.Mock(side_effect=outcomes)
    refused = contextlib.nullcontext() if result else pytest.raises(RuntimeError, match="no")
    with refused:
        assert insist(server.localhost_client(), call) == result
    assert call.call_count == count
    server.stop()


class Clients:
    """A writer for each of two shards, and one learner that reads both, all in threads."""

    def __init__(self, addresses: list[str]) -> None:
        self.replays = [reverb.Client(address) for address in addresses]
        self.rows, self.batches = [0, 0], 0
        self.errors: list[Exception] = []
        self._stop = threading.Event()
        self._threads = [
            *(threading.Thread(target=self._guard, args=(self._write, shard)) for shard in (0, 1)),
            threading.Thread(target=self._guard, args=(self._learn, addresses), daemon=True),
        ]
        for thread in self._threads:
            thread.start()

    def go_on(self, batches: int = 20, rows: int = 30) -> bool:
        """Waits until learner and writers have so many more batches and rows, or an error came."""
        before, learned = list(self.rows), self.batches

        def find() -> bool:
            written = min(now - then for now, then in zip(self.rows, before, strict=True))
            went_on = written >= rows and self.batches >= learned + batches
            return went_on or bool(self.errors)

        wait_for(find, lambda: (self.rows, self.batches))
        return not self.errors

    def stop(self) -> None:
        self._stop.set()
        for thread in self._threads[:2]:
            thread.join()

    def _guard(self, target: Callable[..., None], *args: object) -> None:
        try:
            target(*args)
        except WriterStopped:
            pass
        except Exception as error:
            self.errors.append(error)

    def _write(self, shard: int) -> None:
        number = np.arange(1)
        writer = SequenceWriter(
            self.replays[shard],
            [TABLE],
            blocks=BLOCKS,
            actors=number,
            tasks=number,
            agent=0,
            should_stop=self._stop.is_set,
        )
        types = np.asarray([step_types([9] * 10, 100)], np.uint8)
        rows = stream(np.random.default_rng(shard), types)
        while not self._stop.is_set():
            row = rows[self.rows[shard] % len(rows)]
            append(writer, row)
            self.rows[shard] += 1

    def _learn(self, addresses: list[str]) -> None:
        batches = dataset.make_dataset(
            addresses, [TABLE], environment_spec(), CORE_STATE, BLOCKS, [4]
        )
        updater = PriorityUpdater(self.replays, TABLE.name)
        for batch in batches:
            updater.update(batch.shard.numpy(), batch.key.numpy(), np.ones(4))
            self.batches += 1
            if self._stop.is_set():
                return


@pytest.fixture
def ports() -> list[int]:
    return [portpicker.pick_unused_port() for _ in range(2)]


@pytest.fixture
def shards(ports: list[int], tmp_path: pathlib.Path) -> Iterator[list[ShardProcess]]:
    """Two servers; whoever replaces one in the list leaves the new one to be ended."""
    shards = [ShardProcess(port, tmp_path / str(i)) for i, port in enumerate(ports)]
    yield shards
    for shard in shards:
        shard.kill()


def test_writers_and_the_reader_go_on_when_killed_servers_are_back(
    shards: list[ShardProcess], ports: list[int], tmp_path: pathlib.Path
) -> None:
    """One comes back with what it had saved, the other, which never saved, comes back empty."""
    clients = Clients([f"localhost:{port}" for port in ports])  # before there is a server
    assert tables.num_items(clients.replays) >= 0  # as soon as there is one
    assert clients.go_on(), clients.errors
    saved = clients.replays[0].checkpoint()
    held = clients.replays[0].server_info()[TABLE.name].current_size
    for shard in shards:
        shard.kill()
    time.sleep(1.0)
    assert not clients.errors
    before = list(clients.rows), clients.batches

    for i, replay in enumerate((saved, "")):
        shards[i] = ShardProcess(ports[i], tmp_path / str(i), replay)
    assert clients.go_on(), clients.errors
    for i in (0, 1):
        assert clients.rows[i] > before[0][i]
    info = clients.replays[0].server_info()[TABLE.name]
    assert info.rate_limiter_info.insert_stats.completed > held
    clients.stop()
    assert not clients.errors
