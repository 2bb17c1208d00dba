"""What a forked process does first, and last."""

import contextlib
import os
import pathlib
import random
import signal
import sys
import threading
import time
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np
from launchpad.launch import worker_manager

from environments.copies.dead_simulators import CannotPlayError
from launch.graph import process, temporary_files
from launch.graph.program import environment_of
from launch.local import descendants

LABEL = "RECURRENT_REPLAY_NODE"  # environment variable of what a node starts
_ENDING = {signal.SIGINT, signal.SIGQUIT, signal.SIGHUP, signal.SIGTERM}
_SERVER_SECONDS = 1.0  # between two looks of a node whether the server is there


def run(label: str, node: Callable[[], Any], output: pathlib.Path, server: int) -> NoReturn:
    """Is a node's process.

    Args:
      label: <group>/<index> of the node.
      node: is the node.
      output: file for what it prints.
      server: process that has forked it, with which it ends. That is told and not asked for here:
        by now it may be gone already.
    """
    os.environ.update(environment_of(label.split("/")[0]), **{LABEL: label})
    threading.Thread(target=_end_with, args=(server,), daemon=True).start()
    _print_into(output)
    random.seed()  # or all forks would draw the same
    np.random.seed()
    manager = worker_manager.WorkerManager(register_in_thread=True)
    for number in (signal.SIGINT, signal.SIGHUP):  # not ignored: what it starts would ignore them
        signal.signal(number, lambda *_: None)
    try:
        node()
        # Somebody's SIGTERM is a death that the supervisor mends; after its own it does not look.
        code = process.TERMINATED if manager.stop_event().is_set() else process.DONE
    except SystemExit as exit_:
        code = exit_.code if isinstance(exit_.code, int) else int(exit_.code is not None)
    except BaseException as error:
        sys.excepthook(type(error), error, error.__traceback__)
        code = process.CANNOT_PLAY if isinstance(error, CannotPlayError) else 1
    leave(code)


def _end_with(server: int) -> None:
    """Ends this process soon after its server, without a clean-up that nobody would wait for."""
    while os.getppid() == server:
        time.sleep(_SERVER_SECONDS)
    descendants.kill()
    temporary_files.remove()
    os._exit(1)


def _print_into(file: pathlib.Path) -> None:
    """Standard output and error of this process go into a file from here on, line by line."""
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    descriptor = os.open(file, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o666)
    for number in (1, 2):
        os.dup2(descriptor, number)
    sys.stdout = open(1, "w", buffering=1, closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", buffering=1, closefd=False)  # noqa: SIM115


def fork_afresh() -> None:
    """Has forks of this process, and theirs, hear signals as a new process does.

    What was ignored still is, but for signals that end a process: a shell's background job ignores
    SIGINT, and a helper that somebody ends by it and waits for would not end. A signal meant for a
    fork that has yet to begin waits until it has: Python drops what comes for the handler that the
    fork had from here.
    """
    os.register_at_fork(
        before=_hold_signals, after_in_parent=_release_signals, after_in_child=_hear_afresh
    )


_held = threading.local()


def _hold_signals() -> None:
    _held.mask = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())


def _release_signals() -> None:
    signal.pthread_sigmask(signal.SIG_SETMASK, _held.mask)


def _hear_afresh() -> None:
    for number in signal.valid_signals():
        handler = signal.getsignal(number)
        if callable(handler) or (number in _ENDING and handler == signal.SIG_IGN):
            fresh = signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL
            signal.signal(number, fresh)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def fork() -> int:
    """As `os.fork`, with nothing printed twice."""
    sys.stdout.flush()
    sys.stderr.flush()
    return os.fork()


def leave(code: int) -> NoReturn:
    """Ends a fork: what its parent is to do at exit, it does not."""
    with contextlib.suppress(OSError):
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(code)
