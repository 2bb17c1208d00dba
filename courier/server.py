"""The side that answers."""

import threading
import time
from collections.abc import Callable
from concurrent import futures
from typing import Any, NoReturn
from urllib import parse

import grpc
import portpicker

from courier import credentials, messages

_LONGEST_REASON = 1_000  # characters: gRPC's headers have 8 kB, and escape some as twelve bytes

SERVICE = "recurrent_replay.Courier"
OPTIONS = [
    ("grpc.max_send_message_length", -1),  # parameters have any size
    ("grpc.max_receive_message_length", -1),
    ("grpc.enable_http_proxy", 0),
]
_STOP_SECONDS = 1.0  # in which calls that were begun may end
_SAY_SECONDS = 60.0  # between two lines about callers that were refused
_SERVER_OPTIONS = [
    *OPTIONS,
    ("grpc.so_reuseport", 0),  # two servers of one port would share the calls
    ("grpc.http2.min_ping_interval_without_data_ms", 5_000),
    ("grpc.keepalive_permit_without_calls", 1),
]


class Server(grpc.GenericRpcHandler):
    """Serves functions by name, on every address of this host.

    Args:
      name: as Launchpad gives it; not used.
      port: to listen on; a free one by default.
      thread_pool_size: how many calls are answered at once.
    """

    def __init__(
        self, name: str | None = None, port: int | None = None, thread_pool_size: int = 16
    ) -> None:
        self.port = port or portpicker.pick_unused_port()
        self._functions: dict[str, Callable[..., Any]] = {}
        self._threads = thread_pool_size
        self._server: grpc.Server | None = None
        self._lock = threading.Lock()
        self._said = -_SAY_SECONDS
        self._secret = credentials.secret()

    def BindHandler(self, method: str, function: Callable[..., Any]) -> None:
        """Serves a function under a name."""
        self._functions[method] = function

    def Start(self) -> None:
        """Listens.

        Raises:
          RuntimeError: somebody else has the port.
        """
        pool = futures.ThreadPoolExecutor(self._threads, thread_name_prefix="courier")
        self._server = grpc.server(pool, (self,), options=_SERVER_OPTIONS)
        address, files = f"[::]:{self.port}", credentials.tls()
        if files is None:
            self._server.add_insecure_port(address)
        else:
            pair = ((files.key, files.certificate),)
            self._server.add_secure_port(
                address, grpc.ssl_server_credentials(pair, files.authority, True)
            )
        self._server.start()

    def Stop(self) -> None:
        """Takes no more calls, and ends those that go on."""
        if self._server is not None:
            self._server.stop(_STOP_SECONDS)

    def Join(self) -> None:
        """Waits until it has stopped."""
        if self._server is not None:
            self._server.wait_for_termination()

    def service(self, details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler:
        """Tells gRPC how a call is answered."""
        service, _, method = details.method.lstrip("/").partition("/")
        known = credentials.are_shown(details.invocation_metadata, self._secret)

        def answer(message: bytes, context: grpc.ServicerContext) -> bytes:
            if not known:
                self._say(method, context.peer())
                _refuse(
                    context,
                    grpc.StatusCode.UNAUTHENTICATED,
                    "This server answers processes of its own run alone, which know its secret.",
                )
            function = self._functions.get(method)
            if service != SERVICE or function is None:
                _refuse(
                    context,
                    grpc.StatusCode.UNIMPLEMENTED,
                    f"There is no {method!r} here; there is {', '.join(sorted(self._functions))}.",
                )
            try:
                args, kwargs = messages.unpack(message)
            except (ValueError, TypeError) as error:
                _refuse(context, grpc.StatusCode.INVALID_ARGUMENT, str(error))
            try:
                return messages.pack(function(*args, **kwargs))
            except Exception as error:
                _refuse(context, grpc.StatusCode.UNKNOWN, f"{type(error).__name__}: {error}")

        return grpc.unary_unary_rpc_method_handler(answer)

    def _say(self, method: str, peer: str) -> None:
        with self._lock:
            now = time.monotonic()
            if now < self._said + _SAY_SECONDS:
                return
            self._said = now
        refused = f"A call of {method!r} from {parse.unquote(peer)} was refused"
        print(f"{refused}: it shows no secret of this run.", flush=True)


def _refuse(context: grpc.ServicerContext, code: grpc.StatusCode, why: str) -> NoReturn:
    """Ends a call; of what gRPC would not carry in a header, with the beginning."""
    context.abort(code, why[:_LONGEST_REASON])
    raise AssertionError  # gRPC has raised an error of its own
