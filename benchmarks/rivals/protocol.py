"""The protocol between a benchmark and a rival: lines of JSON on the rival's stdin and stdout.

    benchmark                                   rival
    python -m benchmarks.rivals.<module> SETTINGS <name>
                                                {"versions": {...}, "first_step_seconds": 1.5}
    3
                                                {"seconds": 0.9}        three steps took that long

The end of its stdin ends the rival. This module needs nothing but Python.
"""

import importlib.metadata
import json
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

Settings = Mapping[str, Any]
MakeStep = Callable[[Settings], Callable[[], object]]


def serve(makers: Mapping[str, MakeStep], packages: Sequence[str]) -> None:
    """Answers a benchmark until it ends.

    Args:
      makers: name -> from settings to a function that makes one step and returns when it is done.
      packages: whose versions are told.
    """
    replies = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # what libraries print is no reply
    step = makers[sys.argv[2]](json.loads(sys.argv[1]))
    first = _seconds(step, 1)
    print(json.dumps(dict(versions=versions(packages), first_step_seconds=first)), file=replies)
    for line in sys.stdin:
        print(json.dumps({"seconds": _seconds(step, int(line))}), file=replies)


def versions(packages: Sequence[str]) -> dict[str, str]:
    """The versions of installed packages."""
    return {name: importlib.metadata.version(name) for name in packages}


def _seconds(step: Callable[[], object], steps: int) -> float:
    started = time.perf_counter()
    for _ in range(steps):
        step()
    return time.perf_counter() - started
