"""Calls to a server that is late, breaks off, or never answers: they wait, say so, and end."""

import re
import threading
import time
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import grpc
import portpicker
import pytest
from launchpad.nodes.courier import courier_utils

from courier.client import CallError, Client
from launch.graph import servers
from launch.graph.servers import PatientClient, StoppedError
from tests.patience import PATIENCE, wait_for


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("MESSAGE_SECONDS", "PAUSE_SECONDS"):
        monkeypatch.setattr(servers, name, 0.05)


class Server:
    """The served object."""

    def double(self, number: int) -> int:
        return 2 * number

    def fail(self) -> None:
        raise ValueError("no such thing")


@pytest.fixture
def address() -> str:
    return f"localhost:{portpicker.pick_unused_port()}"


@pytest.fixture
def serve(address: str) -> Iterator[Callable[[], None]]:
    running = []

    def start() -> None:
        port = int(address.rpartition(":")[2])
        running.append(courier_utils.make_courier_server(Server(), port=port))
        running[-1].Start()

    yield start
    for server in running:
        server.Stop()
        server.Join()


def _client(client: Any, stop: threading.Event | None = None) -> PatientClient:
    return PatientClient(client, "The learner", "host:1", stop or threading.Event())


def test_an_answer_is_passed_on_without_a_word(
    address: str,
    serve: Callable[[], None],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(servers, "MESSAGE_SECONDS", PATIENCE)
    serve()
    client = _client(Client(address))
    assert client.double(number=21) == 42
    assert capsys.readouterr().out == ""


def test_an_error_on_the_server_is_the_callers(address: str, serve: Callable[[], None]) -> None:
    serve()
    with pytest.raises(CallError, match="no such thing"):
        _client(Client(address)).fail()


def test_a_late_server_is_waited_for_with_messages(
    address: str, serve: Callable[[], None], capsys: pytest.CaptureFixture[str]
) -> None:
    said = ""

    def is_told_of_twice() -> bool:
        nonlocal said
        said += capsys.readouterr().out
        return said.count("\n") >= 2

    def serve_late() -> None:
        wait_for(is_told_of_twice)
        serve()

    late = threading.Thread(target=serve_late)
    late.start()
    assert _client(Client(address)).double(21) == 42
    late.join()
    for line in said.splitlines():
        assert re.fullmatch(r"The learner at host:1 has not answered yet \(\d+ s\)\.", line)


class Scripted:
    """A client whose calls go as a list says: answers, errors, and None for silence."""

    def __init__(self, *script: Any) -> None:
        self.begun: list[Scripted.Answer] = []
        script_left = iter(script)

        def call(*_: Any) -> Scripted.Answer:
            self.begun.append(Scripted.Answer(next(script_left)))
            return self.begun[-1]

        self.futures = SimpleNamespace(call=call)

    class Answer:
        def __init__(self, outcome: Any) -> None:
            self._outcome = outcome
            self.is_done = outcome is not None

        def result(self, timeout: float) -> Any:
            if isinstance(self._outcome, Exception):
                raise self._outcome
            if self._outcome is None:
                time.sleep(timeout)
                raise TimeoutError
            return self._outcome

        def cancel(self) -> None:
            self.is_done = True


class Broken(grpc.RpcError):
    """The error that gRPC raises."""

    def __init__(self, code: grpc.StatusCode) -> None:
        self.code = lambda: code
        self.details = lambda: "the socket was closed"


def _broken(code: grpc.StatusCode) -> CallError:
    return CallError(Broken(code))


@pytest.mark.parametrize("code", servers.GONE)
def test_a_call_that_broke_off_is_made_again(
    code: grpc.StatusCode, capsys: pytest.CaptureFixture[str]
) -> None:
    client = Scripted(_broken(code), _broken(code), "answer")
    assert _client(client).call() == "answer"
    assert len(client.begun) == 3
    said = re.sub(r" \(\d+ s\)", "", capsys.readouterr().out)
    assert said.splitlines() == [
        "The learner at host:1 is gone; trying again.",
        "The learner at host:1 is gone; trying again.",
        "The learner at host:1 answers again.",
    ]


def test_a_call_whose_answer_was_lost_is_made_again(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(servers, "REPEAT_SECONDS", 0.12)
    client = Scripted(None, "answer")
    assert _client(client).call() == "answer"
    assert client.begun[0].is_done
    assert "answers again" in capsys.readouterr().out


@pytest.mark.parametrize("outcome", [None, _broken(grpc.StatusCode.UNAVAILABLE)])
def test_a_process_that_is_asked_to_end_waits_no_longer(outcome: Any) -> None:
    stop = threading.Event()
    threading.Timer(0.02, stop.set).start()
    client = Scripted(*[outcome] * 10_000)
    with pytest.raises(StoppedError, match="The learner at host:1"):
        _client(client, stop).call()
    assert all(answer.is_done for answer in client.begun)
