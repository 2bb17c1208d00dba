"""Vertex AI's job service: python -m tests.launch.gcp.vertex FOLDER

Keeps each job that is created as FOLDER/jobs/<number>, as it came, and notes one that is cancelled
as FOLDER/jobs/<number>.cancelled. It knows nothing of Google's client library, which takes longer
to import than a launch takes: `decode` reads the fields that tests look at off the wire.
"""

import pathlib
import sys
import threading
from collections.abc import Callable, Mapping
from concurrent import futures
from typing import Any

import grpc
from google.protobuf.internal import decoder

REGION = "europe-west4"
HOST = f"{REGION}-aiplatform.googleapis.com"
_SERVICE = "google.cloud.aiplatform.v1.JobService"

# Field number -> its name, and the fields of what it holds; strings and numbers have none.
Fields = Mapping[int, tuple[str, "Fields | None"]]
_MACHINE: Fields = {1: ("machine_type", None), 2: ("accelerator", None), 3: ("count", None)}
_POOL: Fields = {
    1: ("machine", _MACHINE),
    2: ("replicas", None),
    6: ("container", {1: ("image", None)}),
}
_JOB: Fields = {
    2: ("display_name", None),
    4: ("spec", {1: ("pools", _POOL), 4: ("service_account", None)}),
}
REQUEST: Fields = {1: ("parent", None), 2: ("job", _JOB), 3: ("name", None)}


def decode(data: bytes, fields: Fields) -> dict[str, list[Any]]:
    """Every field of a message that has a name, as a list of all that it holds."""
    found: dict[str, list[Any]] = {}
    position = 0
    while position < len(data):
        tag, position = decoder._DecodeVarint(data, position)
        value: Any
        if tag & 7 == 0:
            value, position = decoder._DecodeVarint(data, position)
        else:
            assert tag & 7 == 2, "These messages have no numbers of fixed size."
            size, position = decoder._DecodeVarint(data, position)
            value, position = data[position : position + size], position + size
        if tag >> 3 in fields:
            name, inner = fields[tag >> 3]
            if isinstance(value, bytes):
                value = decode(value, inner) if inner else value.decode()
            found.setdefault(name, []).append(value)
    return found


class Jobs:
    """The service's methods, which take and give messages as bytes."""

    def __init__(self, folder: pathlib.Path) -> None:
        self._folder = folder / "jobs"
        self._folder.mkdir()
        self._lock = threading.Lock()

    def create(self, request: bytes, _: object) -> bytes:
        """CreateCustomJob."""
        parent = decode(request, REQUEST)["parent"][0]
        with self._lock:
            number = len(list(self._folder.iterdir())) + 1
            (self._folder / str(number)).write_bytes(request)
        return _named(f"{parent}/customJobs/{number}")

    def get(self, request: bytes, _: object) -> bytes:
        """GetCustomJob; the name is the request's first field, as it is the job's."""
        return _named(decode(request, REQUEST)["parent"][0])

    def cancel(self, request: bytes, _: object) -> bytes:
        """CancelCustomJob."""
        name = decode(request, REQUEST)["parent"][0]
        (self._folder / f"{name.rpartition('/')[2]}.cancelled").write_text(name)
        return b""


def _named(name: str) -> bytes:
    """A CustomJob of that name."""
    text = name.encode()
    assert len(text) < 128
    return bytes([1 << 3 | 2, len(text)]) + text


def main(folder: pathlib.Path) -> None:
    """Serves until it is killed."""
    jobs = Jobs(folder)
    methods: dict[str, Callable[[bytes, object], bytes]] = {
        "CreateCustomJob": jobs.create,
        "GetCustomJob": jobs.get,
        "CancelCustomJob": jobs.cancel,
    }
    handlers = {name: grpc.unary_unary_rpc_method_handler(of) for name, of in methods.items()}
    server = grpc.server(futures.ThreadPoolExecutor(4))
    server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler(_SERVICE, handlers)])
    pair = ((folder / "server.key").read_bytes(), (folder / "server.pem").read_bytes())
    assert server.add_secure_port("0.0.0.0:443", grpc.ssl_server_credentials([pair]))
    server.start()
    print("serving", flush=True)
    server.wait_for_termination()


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
