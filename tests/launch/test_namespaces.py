"""The hosts that tests are run on: they reach each other, can be cut off, and can lose power."""

import os
import pathlib
import subprocess
import sys

import pytest

from tests.launch import namespaces
from tests.launch.namespaces import Host, Network

SERVE = """
import socket
server = socket.create_server(("", 2222))
print("ready", flush=True)
while True:
    with server.accept()[0] as connection:
        connection.sendall(connection.getpeername()[0].encode())
"""
ASK = """
import socket, sys
with socket.create_connection((sys.argv[1], 2222), timeout=0.5) as connection:
    print(connection.recv(100).decode())
"""


@pytest.fixture
def network() -> Network:
    reason = namespaces.why_not()
    if reason:
        pytest.skip(f"No network namespaces: {reason}.")
    return Network()


def _ask(host: Host, address: str, folder: pathlib.Path) -> str:
    """What a server at the address says that it sees of a host; its last word otherwise."""
    output = folder / f"from-{host.address}"
    output.unlink(missing_ok=True)
    command = [sys.executable, "-c", ASK, address]
    host.start(command, folder=folder, environment=os.environ, output=output).wait()
    return output.read_text().splitlines()[-1]


def test_hosts_have_addresses_cables_and_power(network: Network, tmp_path: pathlib.Path) -> None:
    with network:
        a, b = network.add(), network.add()
        assert a.address != b.address
        output = tmp_path / "server"
        command = [sys.executable, "-c", SERVE]
        server = b.start(command, folder=tmp_path, environment=os.environ, output=output)
        while "ready" not in output.read_text():
            assert server.poll() is None
        assert _ask(a, b.address, tmp_path) == a.address
        assert "unreachable" in _ask(a, "192.0.2.1", tmp_path)  # there is no way out
        b.cut()
        assert "timed out" in _ask(a, b.address, tmp_path)
        b.reconnect()
        assert _ask(a, b.address, tmp_path) == a.address
        b.lose_power()
        assert server.wait() < 0
        assert "timed out" in _ask(a, b.address, tmp_path)
        b.reconnect()
        assert "refused" in _ask(a, b.address, tmp_path)
    listed = subprocess.run(["ip", "netns"], capture_output=True, text=True).stdout
    assert f"hosts-{os.getpid()}-" not in listed
