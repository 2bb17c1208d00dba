"""What an agent's further learners do in their processes, beside learning."""

import os
import threading
from types import SimpleNamespace
from typing import Any

import pytest

from launch.graph import process
from launch.graph.peer_node import PeerNode


class Peer:
    """Stands for a learner that ends when others do, after some updates."""

    def __init__(self, updates: int, error: Exception | None = None) -> None:
        self.steps, self.skipped, self.warm = 0, 0, False
        self._updates, self._error = updates, error
        self.learner = self
        self.priorities = SimpleNamespace(close=lambda: None)

    @property
    def has_ended(self) -> bool:
        return self.steps == self._updates

    def warm_up(self) -> None:
        self.warm = True

    def try_step(self, timeout: float) -> None:
        assert self.warm
        if self._error is not None:
            raise self._error
        self.steps += 1

    def skip(self, timeout: float) -> bool:
        self.skipped += 1
        if self.skipped == 3:
            process.stop_event().set()
        return True


def _node(peer: Peer) -> PeerNode:
    node = PeerNode.__new__(PeerNode)
    learning: Any = peer
    node._learning, node._over = learning, threading.Event()
    return node


@pytest.fixture
def stop(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Set when the node is asked to end."""
    event = threading.Event()
    monkeypatch.setattr(process, "stop_event", lambda: event)
    monkeypatch.setattr(process, "GRACE_SECONDS", 0.05)
    return event


def test_it_learns_until_all_end_and_blocks_no_one_afterwards(stop: threading.Event) -> None:
    peer = Peer(updates=3)
    _node(peer).run()
    assert (peer.steps, peer.skipped) == (3, 3)
    assert stop.is_set()


def test_what_breaks_off_an_update_ends_it(stop: threading.Event) -> None:
    with pytest.raises(ConnectionError, match="reset"):
        _node(Peer(updates=3, error=ConnectionError("reset by peer"))).run()


def test_after_a_crash_elsewhere_it_is_no_crash_of_its_own(stop: threading.Event) -> None:
    stop.set()
    node = _node(Peer(updates=3, error=ConnectionError("reset by peer")))
    node._over.set()  # its process is not to end here
    node.run()


def test_it_ends_though_it_waits_for_one_that_is_gone(
    stop: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    codes: list[int] = []
    monkeypatch.setattr(os, "_exit", codes.append)
    stop.set()
    _node(Peer(updates=3))._end_when_torn_down(stop)
    assert codes == [process.TERMINATED]
