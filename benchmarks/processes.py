"""Processes of their own, forked from one that has imported what they need.

TensorFlow takes each new interpreter seconds to import, and threads do not survive a fork of this
process.
"""

import multiprocessing
from collections.abc import Callable
from multiprocessing.process import BaseProcess
from typing import Any

_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(["benchmarks.clients", "benchmarks.local_replay"])


def start(target: Callable[..., None], *arguments: Any) -> BaseProcess:
    """Calls a function of a module in a new process, which ends with this one at the latest."""
    process = _CONTEXT.Process(target=target, args=arguments, daemon=True)
    process.start()
    return process
