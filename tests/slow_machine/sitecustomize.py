"""A machine on which this project's code is `SLOW` times as slow, as far as its clocks tell.

    SLOW=10 PYTHONPATH=$PWD/tests/slow_machine make tests

Seconds pass so many times as fast for modules of the rooms, and what they wait for comes so many
times as late; tests and packages have the time of day. So whatever would fail on a busy machine
fails here, and always. Python imports this first in each process.
"""

import concurrent.futures
import os
import pathlib
import queue
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

_SLOW = float(os.environ.get("SLOW", "1"))
_ROOT = f"{pathlib.Path(__file__).resolve().parents[2]}/"
_OTHERS = (f"{_ROOT}tests/", f"{_ROOT}.venv/")
# What waits, and where its timeout stands among the arguments that follow self.
_WAITING: tuple[tuple[type, str, int], ...] = (
    (threading.Thread, "join", 0),
    (threading.Event, "wait", 0),
    (threading.Condition, "wait", 0),
    (threading.Condition, "wait_for", 1),
    (queue.Queue, "get", 1),
    (queue.Queue, "put", 2),
    (concurrent.futures.Future, "result", 0),
)


def _is_slow() -> bool:
    """Whether the caller of the function that asks is a room's."""
    path = sys._getframe(2).f_code.co_filename
    return path.startswith(_ROOT) and not path.startswith(_OTHERS)


def _faster(clock: Callable[[], float]) -> Callable[[], float]:
    return lambda: clock() * (_SLOW if _is_slow() else 1.0)


def _sooner(wait: Callable[..., Any], place: int) -> Callable[..., Any]:
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        if _is_slow():
            if kwargs.get("timeout") is not None:
                kwargs["timeout"] /= _SLOW
            elif len(args) > place and args[place] is not None:
                args = (*args[:place], args[place] / _SLOW, *args[place + 1 :])
        return wait(self, *args, **kwargs)

    return call


if _SLOW != 1.0:
    time.monotonic, time.perf_counter = map(_faster, (time.monotonic, time.perf_counter))
    for kind, name, place in _WAITING:
        setattr(kind, name, _sooner(getattr(kind, name), place))
