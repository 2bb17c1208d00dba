"""Calls of a Reverb server that may be restarted or cut off for a while.

Reverb's own streams, of writers and samplers, find their server again. Its single calls do not:
they end in a RuntimeError, whether the server was out of reach or refused.
"""

import time
from collections.abc import Callable
from typing import TypeVar

import reverb

ASK_SECONDS = 10  # that a server may take to answer before it is said that it does not

T = TypeVar("T")


def insist(client: reverb.Client, call: Callable[[], T]) -> T:
    """Makes a call, and where it fails makes it once more as soon as the server answers.

    Raises:
      RuntimeError: the server answers, and the call fails again.
    """
    try:
        return call()
    except RuntimeError as error:
        print(f"Replay at {client.server_address} is gone ({error}); waiting for it.", flush=True)
    _wait_for(client)
    return call()


def _wait_for(client: reverb.Client) -> None:
    began = time.monotonic()
    while True:
        try:
            client.server_info(timeout=ASK_SECONDS)
        except (reverb.errors.ReverbError, RuntimeError):
            seconds = time.monotonic() - began
            print(
                f"Replay at {client.server_address} does not answer ({seconds:.0f} s).", flush=True
            )
        else:
            return
