"""The side that calls."""

from collections.abc import Callable
from typing import Any

import grpc

from courier import credentials, messages
from courier.server import OPTIONS, SERVICE

_OPTIONS = [
    *OPTIONS,
    # A server that is started again, or whose cable was out, is found within seconds.
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 2_000),
    ("grpc.keepalive_time_ms", 10_000),
    ("grpc.keepalive_timeout_ms", 10_000),
]


class CallError(RuntimeError):
    """A call has no answer.

    Attributes:
      code: why, as gRPC knows it: a function's own error is UNKNOWN.
    """

    def __init__(self, error: grpc.RpcError) -> None:
        super().__init__(error.details())
        self.code: grpc.StatusCode = error.code()


class Answer:
    """To a call that was begun."""

    def __init__(self, future: grpc.Future) -> None:
        self._future = future

    def result(self, timeout: float | None = None) -> Any:
        """Waits for it, so many seconds.

        Raises:
          TimeoutError: it has not come.
          CallError: it will not.
        """
        try:
            return messages.unpack(self._future.result(timeout))
        except grpc.FutureTimeoutError:
            raise TimeoutError from None
        except grpc.RpcError as error:
            raise CallError(error) from None

    def cancel(self) -> None:
        """It is not wanted any more."""
        self._future.cancel()


class Client:
    """Calls a server's functions as its own methods; `client.futures` begins them only.

    A call waits for a server that is not there yet.

    Args:
      server_address: `host:port`.
    """

    def __init__(self, server_address: str) -> None:
        self.address = server_address
        files = credentials.tls()
        if files is None:
            self._channel = grpc.insecure_channel(server_address, _OPTIONS)
        else:
            own = grpc.ssl_channel_credentials(files.authority, files.key, files.certificate)
            name = ("grpc.ssl_target_name_override", credentials.NAME)
            self._channel = grpc.secure_channel(server_address, own, [*_OPTIONS, name])
        self.futures = _Futures(self._channel)

    def __reduce__(self) -> tuple[Any, ...]:
        return Client, (self.address,)

    def __getattr__(self, method: str) -> Callable[..., Any]:
        if method.startswith("_"):
            raise AttributeError(method)
        ask = self._channel.unary_unary(f"/{SERVICE}/{method}")

        def call(*args: Any, **kwargs: Any) -> Any:
            # gRPC runs a thread for each answer that is waited for later; this one it waits for.
            try:
                return messages.unpack(ask(messages.pack((args, kwargs)), **_how()))
            except grpc.RpcError as error:
                raise CallError(error) from None

        return call


def _how() -> dict[str, Any]:
    return dict(metadata=credentials.metadata(), wait_for_ready=True)


class _Futures:
    """Begins calls."""

    def __init__(self, channel: grpc.Channel) -> None:
        self._channel = channel

    def __getattr__(self, method: str) -> Callable[..., Answer]:
        if method.startswith("_"):
            raise AttributeError(method)
        call = self._channel.unary_unary(f"/{SERVICE}/{method}")

        def begin(*args: Any, **kwargs: Any) -> Answer:
            return Answer(call.future(messages.pack((args, kwargs)), **_how()))

        return begin
