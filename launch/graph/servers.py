"""Servers that may be late, restarted or cut off for a while: who calls them waits, and says so."""

import math
import threading
import time
from collections.abc import Callable
from typing import Any

import grpc
import launchpad as lp

from courier.client import Answer, CallError, Client
from launch.graph import process

MESSAGE_SECONDS = 10.0  # between two messages about a server that does not answer
REPEAT_SECONDS = 60.0  # after which a call is made anew: its answer may have been lost with a host
LOOK_SECONDS = 0.2  # between two looks whether this process is to end
PATIENCE_SECONDS = 1.0  # for an answer, once it is to end
PAUSE_SECONDS = 0.2  # between a call that broke off and the next attempt
GONE = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED)  # of a call whose server went away


class StoppedError(RuntimeError):
    """This process was asked to end while it waited for a server."""


class ServerNode(lp.CourierNode):
    """A Courier server whose clients outlast its absence; `title` names it: "the learner"."""

    def __init__(self, title: str, constructor: Callable[..., Any], *args: Any, **kwargs: Any):
        super().__init__(constructor, *args, **kwargs)
        self._title = title

    def create_handle(self) -> "PatientHandle":
        """Becomes a `PatientClient` in the process that is given it."""
        handle: PatientHandle = self._track_handle(PatientHandle(self._address, self._title))
        return handle


class PatientHandle(lp.CourierHandle):
    """Handle of a `ServerNode`."""

    def __init__(self, address: Any, title: str) -> None:
        super().__init__(address)
        self._title = title

    def dereference(self) -> "PatientClient":
        """The client. Called in the thread of the node that is given it."""
        address = self._address.resolve()
        return PatientClient(Client(address), self._title, address, lp.stop_event())


class PatientClient:
    """Calls a Courier server's methods as its own; each call ends with an answer.

    Where the connection broke off before one came, the call is made again, so a server may hear it
    twice. That is harmless: parameters are only read, newest values replace older ones, and of an
    actor's steps one second's worth may be counted twice.

    Messages name the server by its title. `stop` is set when this process is to end.
    """

    def __init__(
        self, client: Client, title: str, server_address: str, stop: threading.Event
    ) -> None:
        self.server_address = server_address
        self._client = client
        self._name = f"{title} at {server_address}"
        self._stop = stop

    def __getattr__(self, method: str) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            return self._call(lambda: getattr(self._client.futures, method)(*args, **kwargs))

        return call

    def _call(self, begin: Callable[[], Answer]) -> Any:
        """The answer to a call.

        Raises:
          StoppedError: when this process is asked to end before there is one.
          CallError: an error on the server.
        """
        asked, told = time.monotonic(), False
        while True:
            try:
                answer = self._wait(begin(), asked)
            except TimeoutError:
                told = True
                continue
            except CallError as error:
                if error.code not in GONE:
                    raise
                process.beat()
                self._say("is gone; trying again", asked)
                told = True
                if self._stop.wait(PAUSE_SECONDS):
                    raise StoppedError(f"Asked to end while {self._name} was away.") from None
                continue
            if told:
                self._say("answers again", asked)
            return answer

    def _wait(self, answer: Answer, asked: float) -> Any:
        """The answer if it comes within `REPEAT_SECONDS`."""
        began = time.monotonic()
        say_at, stopped_at = began + MESSAGE_SECONDS, math.inf
        while True:
            try:
                return answer.result(timeout=LOOK_SECONDS)
            except TimeoutError:
                process.beat()
                now = time.monotonic()
                if now >= say_at:
                    say_at = now + MESSAGE_SECONDS
                    self._say("has not answered yet", asked)
                if self._stop.is_set():
                    stopped_at = min(stopped_at, now)
                if now >= stopped_at + PATIENCE_SECONDS:
                    answer.cancel()
                    raise StoppedError(f"Asked to end while waiting for {self._name}.") from None
                if now >= began + REPEAT_SECONDS:
                    answer.cancel()
                    raise

    def _say(self, what: str, asked: float) -> None:
        print(f"{self._name} {what} ({time.monotonic() - asked:.0f} s).", flush=True)
