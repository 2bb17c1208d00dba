"""Waits for Reverb servers that are restarted or cut off for a while, and says so.

Reverb's own streams, of writers and samplers, find their server again and repeat what was lost, in
silence. Its single calls do not: they end in a RuntimeError, whether the server was out of reach or
refused.

A stream that only waits does not hear that the server's side of its connection is gone, as it is
20 s after a cable was pulled. Reverb sends no probes; so after a long wait the kernel is told to.
"""

import contextlib
import socket
import time
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import reverb

from replay import own_sockets

ASK_SECONDS = 10  # for a server's answer, before its silence is reported
LOOK_SECONDS = 1  # the same while others wait for the caller

_PROBES = (
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 10),  # seconds
    (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 5),
    (socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 20_000),  # milliseconds without an answer
)

T = TypeVar("T")


def insist(client: reverb.Client, call: Callable[[], T]) -> T:
    """Makes a call, and if it fails once more, as soon as the server answers.

    Raises:
      RuntimeError: the server answers, and the call fails again.
    """
    try:
        return call()
    except RuntimeError as error:
        print(f"Replay at {client.server_address} is gone ({error}); waiting for it.", flush=True)
    wait_for(client)
    return call()


def wait_for(client: reverb.Client) -> dict[str, Any]:
    """Returns a server's account of its tables, as soon as it answers."""
    began = time.monotonic()
    while True:
        tables = _ask(client, ASK_SECONDS)
        if tables is not None:
            return tables
        seconds = time.monotonic() - began
        print(f"Replay at {client.server_address} does not answer ({seconds:.0f} s).", flush=True)


class Watch:
    """Reports which servers are away while a stream of theirs stands still.

    Args:
      clients: of the servers.
    """

    def __init__(self, clients: Sequence[reverb.Client]) -> None:
        self._clients = clients
        self._began: float | None = None  # to wait
        self._asked = 0.0

    def over(self) -> None:
        """The stream goes on."""
        self._began = None

    def wait(self) -> None:
        """The stream still stands: asks the servers, once it has stood for `ASK_SECONDS`."""
        now = time.monotonic()
        if self._began is None:
            self._began = self._asked = now
        if now < self._asked + ASK_SECONDS:
            return
        for client in self._clients:
            if _ask(client, LOOK_SECONDS) is None:
                seconds = now - self._began
                print(
                    f"Replay at {client.server_address} does not answer ({seconds:.0f} s).",
                    flush=True,
                )
        _have_connections_probed(self._clients)
        self._asked = time.monotonic()


def _have_connections_probed(clients: Sequence[reverb.Client]) -> None:
    """Has the kernel break off this process's connections to servers that are gone."""
    ports = {int(client.server_address.rpartition(":")[2]) for client in clients}
    for connection in own_sockets.tcp():
        with contextlib.suppress(OSError):  # it is not connected
            if connection.getpeername()[1] in ports:
                for level, option, value in _PROBES:
                    connection.setsockopt(level, option, value)


def _ask(client: reverb.Client, seconds: int) -> dict[str, Any] | None:
    """A server's account of its tables; None where it does not answer in time."""
    began = time.monotonic()
    try:
        tables: dict[str, Any] = client.server_info(timeout=seconds)
    except (reverb.errors.ReverbError, RuntimeError):
        time.sleep(max(0.0, min(1.0, began + seconds - time.monotonic())))  # it may fail at once
        return None
    return tables
