"""How a benchmark and a peer's process talk: lines of JSON on the peer's stdin and stdout.

    benchmark                                   peer
    python -m benchmarks.peers.<name> SETTINGS
                                                {"versions": {...}, "first_step_seconds": 1.5}
    3
                                                {"seconds": 0.9}        three steps took that long

The end of its stdin ends the peer. This module needs nothing but Python.
"""

import json
import os
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any

Settings = Mapping[str, Any]
MakeStep = Callable[[Settings], Callable[[], object]]


def serve(make_step: MakeStep, versions: Callable[[], Mapping[str, str]]) -> None:
    """Answers a benchmark until it ends.

    Args:
      make_step: from the settings to a function that makes one step and returns when it is done.
      versions: of the peer's libraries.
    """
    replies = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # what libraries print is no reply
    step = make_step(json.loads(sys.argv[1]))
    first = _seconds(step, 1)
    print(json.dumps({"versions": versions(), "first_step_seconds": first}), file=replies)
    for line in sys.stdin:
        print(json.dumps({"seconds": _seconds(step, int(line))}), file=replies)


def _seconds(step: Callable[[], object], steps: int) -> float:
    started = time.perf_counter()
    for _ in range(steps):
        step()
    return time.perf_counter() - started
