"""What it costs to send something: bytes on the loopback device, processor time at both ends."""

from collections.abc import Callable
from typing import NamedTuple

import psutil


class Cost(NamedTuple):
    """Of one thing that was sent."""

    bytes: float
    server: float  # seconds of a core in the server's process
    client: float  # seconds of a core in the client's process


def cost(
    work: Callable[[], int],
    server_seconds: Callable[[], float],
    client_seconds: Callable[[], float],
) -> Cost:
    """What each of the things costs whose number `work` returns when it has sent them."""
    counters = (_bytes, server_seconds, client_seconds)
    before = [counter() for counter in counters]
    number = work()
    return Cost(*((counter() - b) / number for counter, b in zip(counters, before, strict=True)))


def _bytes() -> float:
    return float(psutil.net_io_counters(pernic=True)["lo"].bytes_sent)
