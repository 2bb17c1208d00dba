"""Courier: what can be sent, who may call, and what Launchpad finds in its place."""

import contextlib
import pathlib
import pickle
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import grpc
import msgpack
import numpy as np
import portpicker
import pytest
from hypothesis import given
from hypothesis import strategies as st

from courier import credentials, messages
from courier.client import CallError, Client
from courier.server import SERVICE, Server
from tests.patience import PATIENCE

_PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False)
    | st.text()
    | st.binary(),
    lambda parts: st.lists(parts) | st.dictionaries(st.text(), parts),
)


@given(_PLAIN)
def test_plain_data_comes_as_it_was_sent(value: Any) -> None:
    assert messages.unpack(messages.pack(value)) == value


@pytest.mark.parametrize(
    "array",
    [
        np.arange(24, dtype=np.float32).reshape(2, 3, 4),
        np.arange(24, dtype=np.int64).reshape(4, 6)[:, ::2],  # not contiguous
        np.array([[np.nan, -np.inf]], np.float16),
        np.zeros((3, 0), np.uint8),
        np.array(7.5),
        np.array([True, False]),
        np.array(["word", "ü"]),
        np.asfortranarray(np.arange(6, dtype=">i2").reshape(2, 3)),
    ],
)
def test_arrays_come_as_they_were_sent(array: np.ndarray) -> None:
    found = messages.unpack(messages.pack({"of": [array]}))["of"][0]
    assert (found.dtype, found.shape) == (array.dtype, array.shape)
    np.testing.assert_array_equal(found, array)
    assert not found.flags.writeable


def test_numbers_of_numpy_come_as_pythons_and_tuples_as_lists() -> None:
    found = messages.unpack(messages.pack((np.float32(0.5), np.int64(3), np.bool_(True), (1, 2))))
    assert found == [0.5, 3, True, [1, 2]]
    assert [type(value) for value in found] == [float, int, bool, list]


@pytest.mark.parametrize("value", [object(), {1, 2}, np.array([object()]), print])
def test_what_is_not_plain_is_not_sent(value: Any) -> None:
    with pytest.raises(TypeError, match="A call takes plain data and arrays, got"):
        messages.pack([value])


@given(st.binary() | st.builds(pickle.dumps, _PLAIN))
def test_what_nobody_packed_is_a_value_error_or_plain(message: bytes) -> None:
    with contextlib.suppress(ValueError):
        messages.unpack(message)


@pytest.mark.parametrize(
    ("number", "known", "said"),
    [
        (1, ("O", [1], 0), "no type of plain numbers"),
        (1, ("<f4", [3], 0), "cannot reshape array of size 2"),
        (1, ("<f4", [1], 8), "cannot reshape array of size 0"),
        (1, ("<f4", [1], -2), "cannot reshape array of size 0"),
        (1, ("<f4", [2**62, 2], 0), "no message"),
        (1, "<f4", "no message"),
        (2, ("<f4", [1], 0), "no extension 2"),
    ],
)
def test_what_only_looks_like_an_array_is_refused(number: int, known: Any, said: str) -> None:
    head = msgpack.packb(msgpack.ExtType(number, msgpack.packb(known)))
    message = (len(head).to_bytes(8, "little") + head).ljust(32)
    with pytest.raises(ValueError, match=said):
        messages.unpack(message + b"12345678")


@pytest.mark.parametrize("length", [0, 1, 10_000])
def test_a_message_of_another_length_is_refused(length: int) -> None:
    message = messages.pack([np.arange(3)])
    with pytest.raises(ValueError, match="no message of plain data"):
        messages.unpack(length.to_bytes(8, "little") + message[8:])


CALLED: list[Any] = []


def _fail_at_length() -> None:
    raise ValueError("é" * 20_000)


@pytest.fixture
def server() -> Iterator[Server]:
    served = Server()
    served.BindHandler("double", lambda value: 2 * value)
    served.BindHandler("note", CALLED.append)
    served.BindHandler("fail", lambda: {"word": 1}["key"])
    served.BindHandler("long", _fail_at_length)
    served.BindHandler("odd", object)
    served.Start()
    CALLED.clear()
    yield served
    served.Stop()
    served.Join()


@pytest.fixture
def client(server: Server) -> Client:
    return Client(f"localhost:{server.port}")


def test_functions_are_called_by_name(client: Client) -> None:
    assert client.double(21) == 42
    np.testing.assert_array_equal(client.double(value=np.arange(3)), [0, 2, 4])
    assert client.futures.double("ab").result(PATIENCE) == "abab"
    assert pickle.loads(pickle.dumps(client)).double(2) == 4


@pytest.mark.parametrize(
    ("method", "code", "said"),
    [
        ("fail", grpc.StatusCode.UNKNOWN, "KeyError: 'key'"),
        ("long", grpc.StatusCode.UNKNOWN, "^[^é]*ValueError: é{900}"),
        ("odd", grpc.StatusCode.UNKNOWN, "TypeError: A call takes plain data and arrays"),
        ("triple", grpc.StatusCode.UNIMPLEMENTED, "no 'triple' here; there is double, fail, long"),
    ],
)
def test_errors_are_told(client: Client, method: str, code: grpc.StatusCode, said: str) -> None:
    with pytest.raises(CallError, match=said) as error:
        getattr(client, method)()
    assert error.value.code == code


def test_a_large_message_is_sent(client: Client) -> None:
    assert client.double(np.ones(3_000_000)).sum() == 6_000_000


def test_an_answer_that_does_not_come_in_time_can_be_done_without() -> None:
    begun = Client(f"localhost:{portpicker.pick_unused_port()}").futures.double(1)
    with pytest.raises(TimeoutError):
        begun.result(0.01)
    begun.cancel()


def test_a_port_is_one_servers(server: Server) -> None:
    with pytest.raises(RuntimeError, match=str(server.port)):
        Server(port=server.port).Start()


_CALL = """
import sys
from courier.client import Client
Client(sys.argv[1]).note("a word")
"""


def test_a_process_that_does_not_know_the_secret_is_refused(
    server: Server, capfd: pytest.CaptureFixture[str]
) -> None:
    for _ in range(2):
        address = f"localhost:{server.port}"
        call = [sys.executable, "-c", _CALL, address]
        done = subprocess.run(call, capture_output=True, text=True)
        assert done.returncode == 1
        assert "answers processes of its own run alone" in done.stderr
    assert not CALLED
    said = capfd.readouterr().out
    assert said.count("A call of 'note' from") == 1  # a flood of calls is none of lines
    assert said.endswith("was refused: it shows no secret of this run.\n")


def test_who_knows_but_a_part_of_it_is_refused(server: Server, client: Client) -> None:
    known = credentials.secret()
    try:
        credentials.use(known[:-1])
        with pytest.raises(CallError) as error:
            client.note("a word")
        assert error.value.code == grpc.StatusCode.UNAUTHENTICATED
    finally:
        credentials.use(known)
    client.note("a word")
    assert CALLED == ["a word"]


class Bomb:
    def __reduce__(self) -> tuple[Any, ...]:
        return CALLED.append, ("bomb",)


@pytest.mark.parametrize("secret", [True, False])
def test_a_pickle_is_not_read(server: Server, secret: bool) -> None:
    call = grpc.insecure_channel(f"localhost:{server.port}").unary_unary(f"/{SERVICE}/note")
    metadata = credentials.metadata() if secret else ()
    with pytest.raises(grpc.RpcError) as error:
        call(pickle.dumps(Bomb()), metadata=metadata, wait_for_ready=True, timeout=PATIENCE)
    refused = grpc.StatusCode.INVALID_ARGUMENT if secret else grpc.StatusCode.UNAUTHENTICATED
    assert error.value.code() == refused
    with socket.create_connection(("localhost", server.port), timeout=PATIENCE) as raw:
        raw.sendall(pickle.dumps(Bomb()))
        while raw.recv(4096):  # gRPC closes the connection
            pass
    assert not CALLED


@pytest.fixture
def authority(tmp_path: pathlib.Path) -> Callable[[str], pathlib.Path]:
    """Makes a folder of TLS's files, signed by an authority of their own."""

    def make(name: str) -> pathlib.Path:
        folder = tmp_path / name
        folder.mkdir()
        new = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 1"
        _openssl(folder, f"{new} -subj /CN=authority -keyout its.pem -out authority.pem")
        named = f"-subj /CN={credentials.NAME} -addext subjectAltName=DNS:{credentials.NAME}"
        signed = "-CA authority.pem -CAkey its.pem -addext basicConstraints=critical,CA:FALSE"
        _openssl(folder, f"{new} {named} {signed} -keyout key.pem -out certificate.pem")
        return folder

    return make


def _openssl(folder: pathlib.Path, arguments: str) -> None:
    subprocess.run(["openssl", *arguments.split()], cwd=folder, check=True, capture_output=True)


def test_with_files_calls_go_by_tls(authority: Callable[[str], pathlib.Path]) -> None:
    own, others = (credentials.Tls.read(authority(name)) for name in ("own", "others"))
    known = credentials.secret()
    served = Server()
    served.BindHandler("double", lambda value: 2 * value)
    address = f"localhost:{served.port}"
    try:
        credentials.use(known, own)
        served.Start()
        assert Client(address).double(21) == 42
        for files in (others, None):  # another authority's, and none
            credentials.use(known, files)
            with pytest.raises(TimeoutError):
                Client(address).futures.double(21).result(1.0)
    finally:
        credentials.use(known)
        served.Stop()
        served.Join()


def test_launchpad_and_acme_find_it_without_asking_for_it_first() -> None:
    script = "import acme, launchpad; print(launchpad.CourierClient.__module__)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout == "courier.client\n", done.stderr
