"""A server of a process is reached within it alone, and silent."""

import os
import socket
import subprocess
import sys

import numpy as np
import pytest
import reverb
import tensorflow as tf

from replay import own_server


def _server() -> reverb.Server:
    nowhere = reverb.checkpointers.DefaultCheckpointer(os.devnull)
    return reverb.Server([reverb.Table.queue("queue", 10)], checkpointer=nowhere)


def test_who_is_connected_stays_so_and_nobody_else_comes_in() -> None:
    server = _server()
    client = server.localhost_client()
    client.server_info()
    items = reverb.TimestepDataset(
        client.server_address,
        "queue",
        tf.float32,
        tf.TensorShape([]),
        max_in_flight_samples_per_worker=1,
    )
    sampled = iter(items)
    address = ("localhost", server.port)
    socket.create_connection(address, timeout=10).close()
    own_server.shut(server)
    with pytest.raises(TimeoutError):
        socket.create_connection(address, timeout=0.5)
    for number in range(3):
        client.insert(np.float32(number), {"queue": 1.0})
        assert float(next(sampled).data) == number
    assert server.localhost_client().server_info()["queue"].current_size == 0
    client.reset("queue")
    server.stop()


def test_it_warns_where_the_system_does_not_allow_it(monkeypatch: pytest.MonkeyPatch) -> None:
    server = _server()
    monkeypatch.setattr(own_server, "_SO_ATTACH_FILTER", 9_999)
    with pytest.warns(UserWarning, match=f"port {server.port} of this machine .* not available"):
        own_server.shut(server)
    server.stop()


_SCRIPT = """
import reverb
from replay import own_server
if {silent}:
    own_server.silence()
server = reverb.Server([reverb.Table.queue("t", 1)])
client = server.localhost_client()
client.insert([1], {{"t": 1.0}})
print([sample.info.priority for sample in next(client.sample("t"))])
server.stop()
"""


def test_it_tells_nothing_where_it_is_silenced_and_works_as_before() -> None:
    for silent in (True, False):
        done = subprocess.run(
            [sys.executable, "-c", _SCRIPT.format(silent=silent)],
            env=os.environ | {"TF_CPP_MIN_LOG_LEVEL": "3"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.stdout == "[1.0]\n", done.stderr
        assert ("[reverb/cc" in done.stderr) != silent
