"""A node is silent when it stands still, and at no other time."""

import os
import signal
import time
from collections.abc import Callable

import pytest

from environments.copies import dead_simulators
from launch.graph import process
from launch.graph.process import Heartbeats
from tests.forks import fork
from tests.patience import wait_for


@pytest.fixture(autouse=True)
def nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """This process is no node but within a test."""
    monkeypatch.setattr(process, "BUSY_SECONDS", 0.05)
    monkeypatch.setattr(process, "_own", None)
    monkeypatch.setattr(dead_simulators, "on_wait", dead_simulators.on_wait)


def _fork(watched: Heartbeats, label: str, do: Callable[[], None]) -> int:
    def use_it() -> None:
        watched.use(label)
        do()

    watched.begin(label)
    return fork(use_it)


def _end(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)


def _beat_for_ever() -> None:
    while True:
        process.beat()
        time.sleep(0.05)


def _busy_for_ever() -> None:
    with process.while_busy():
        signal.pause()


def _wait_for_ever() -> None:
    process.beat()
    signal.pause()


def _load_for_ever() -> None:
    while True:
        dead_simulators.on_wait()
        time.sleep(0.05)


@pytest.mark.parametrize("do", [_beat_for_ever, _busy_for_ever, _load_for_ever])
def test_a_node_that_goes_on_is_heard_until_it_is_stopped(do: Callable[[], None]) -> None:
    watched = Heartbeats(["a", "b"])
    pid = _fork(watched, "b", do)
    try:
        for _ in range(3):
            wait_for(lambda: watched.silence("b") < 0.2)
            os.kill(pid, signal.SIGSTOP)
            wait_for(lambda: watched.silence("b") > 0.4)
            os.kill(pid, signal.SIGCONT)
    finally:
        _end(pid)


def test_a_main_loop_that_waits_for_ever_is_silent() -> None:
    watched = Heartbeats(["a"])
    pid = _fork(watched, "a", _wait_for_ever)
    try:
        wait_for(lambda: watched.silence("a") > 0.9)
    finally:
        _end(pid)


def test_what_was_busy_is_silent_afterwards() -> None:
    watched = Heartbeats(["a"])
    watched.begin("a")
    watched.use("a")
    with process.while_busy():
        time.sleep(0.4)
        wait_for(lambda: watched.silence("a") < 0.2)
    wait_for(lambda: watched.silence("a") > 0.4)


def test_nobody_is_watched_where_nothing_was_forked() -> None:
    process.beat()
    with process.while_busy():
        pass
