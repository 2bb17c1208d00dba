"""A call of a server that is away is made again once it answers; one that is refused is not."""

import re
import socket
import threading
from types import SimpleNamespace
from typing import Any

import portpicker
import psutil
import pytest
import reverb

from replay import insistence
from replay.insistence import insist
from tests.patience import wait_for


def _server(port: int) -> reverb.Server:
    return reverb.Server([reverb.Table.queue("queue", 10)], port=port)


def _calls(*script: Any) -> Any:
    """A call that goes as the list says, and how often it was made."""
    left = list(script)

    def call() -> Any:
        outcome = left.pop(0)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    return SimpleNamespace(call=call, left=left)


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
        return said.count("\n") == 2

    def serve_late() -> None:
        wait_for(is_told_of_twice)
        servers.append(_server(port))

    late = threading.Thread(target=serve_late)
    late.start()
    assert insist(client, lambda: client.mutate_priorities("queue", {1: 2.0})) is None
    late.join()
    servers[0].stop()
    gone, away = said.splitlines()
    assert gone.startswith(f"Replay at localhost:{port} is gone")
    assert re.fullmatch(rf"Replay at localhost:{port} does not answer \(\d+ s\)\.", away)


def test_who_waits_long_has_connections_probed(monkeypatch: pytest.MonkeyPatch) -> None:
    """And no others: a stream does not hear that its server has given it up."""
    now = 0.0
    monkeypatch.setattr(insistence, "time", SimpleNamespace(monotonic=lambda: now))
    awaited, other = (_server(portpicker.pick_unused_port()) for _ in range(2))
    clients = [reverb.Client(f"localhost:{server.port}") for server in (awaited, other)]
    for client in clients:
        client.server_info()
    watch = insistence.Watch(clients[:1])
    watch.wait()
    assert _probed(awaited.port) == _probed(other.port) == {0}
    now = insistence.ASK_SECONDS
    watch.wait()
    assert (_probed(awaited.port), _probed(other.port)) == ({1}, {0})
    for server in (awaited, other):
        server.stop()


def _probed(port: int) -> set[int]:
    """Of this process's connections to a server, whether the kernel asks after its other end."""
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


def test_a_call_that_succeeds_is_made_once_and_another_twice_at_most() -> None:
    server = _server(portpicker.pick_unused_port())
    client = server.localhost_client()
    calls = _calls("first", "second")
    assert (insist(client, calls.call), calls.left) == ("first", ["second"])
    calls = _calls(RuntimeError("Socket closed"), "second", "third")
    assert (insist(client, calls.call), calls.left) == ("second", ["third"])
    calls = _calls(RuntimeError("Socket closed"), RuntimeError("no"), "third")
    with pytest.raises(RuntimeError, match="no"):
        insist(client, calls.call)
    assert calls.left == ["third"]
    server.stop()
