"""The learners of an agent find each other, anew when one was started again, and end together."""

import os
import socket
import threading
from types import SimpleNamespace
from typing import Any

import pytest

from agents import several_learners
from launch.graph import learning, process
from launch.graph.learning import FurtherLearner, Meetings
from launch.graph.servers import StoppedError


def test_nobody_hears_of_others_before_all_have_come() -> None:
    found = Meetings()
    assert found.come("impala", 2, 3, "c:1") == []
    assert found.come("impala", 0, 3, "a:0") == []
    assert found.come("impala", 0, 3, "a:1") == []  # it was started again
    assert found.come("impala", 0, 3, "a:1") == []  # and asks again
    assert found.come("r2d2", 1, 3, "x:1") == []  # whose learners meet elsewhere
    assert found.come("impala", 1, 3, "b:1") == ["a:1", "b:1", "c:1"]
    for rank, address in enumerate(("a:1", "b:1", "c:1")):
        assert found.come("impala", rank, 3, address) == ["a:1", "b:1", "c:1"]


def test_who_comes_again_meets_those_who_come_again() -> None:
    found = Meetings()
    found.come("impala", 0, 2, "a:1")
    found.come("impala", 1, 2, "b:1")
    assert found.come("impala", 1, 2, "b:2") == []  # not the one that knew b:1
    assert found.come("impala", 0, 2, "a:2") == ["a:2", "b:2"]
    assert found.come("impala", 1, 2, "b:2") == ["a:2", "b:2"]


def test_one_alone_asks_nobody() -> None:
    assert learning.join(None, "r2d2", 0, 1) is several_learners.ALONE


def test_several_are_put_together_in_the_order_of_their_ranks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made: list[tuple[list[str], int]] = []
    monkeypatch.setattr(learning, "Together", lambda *arguments: made.append(arguments))
    monkeypatch.setattr(process, "wait_for_stop", lambda seconds: False)
    known = Meetings()
    known.come("r2d2", 0, 2, "first:1")
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        address = f"localhost:{server.getsockname()[1]}"
        client: Any = SimpleNamespace(
            server_address="not-there-yet:1",
            should_stop=lambda: vars(client).update(server_address=address),  # and now it is
            meet=known.come,
        )
        learning.join(client, "r2d2", 1, 2)
    ((addresses, rank),) = made
    assert rank == 1
    assert addresses[0] == "first:1"
    assert addresses[1].startswith("127.0.0.1:")  # the way to the coordinator


def test_who_waits_for_others_can_be_asked_to_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "wait_for_stop", lambda seconds: True)
    client = SimpleNamespace(
        server_address="localhost:1", should_stop=lambda: False, meet=Meetings().come
    )
    with pytest.raises(StoppedError, match="waiting for the other learners of r2d2"):
        learning.join(client, "r2d2", 0, 2)


@pytest.mark.parametrize(
    ("rank", "size", "num_shards", "own"),
    [
        (0, 1, 3, [0, 1, 2]),
        (0, 2, 4, [0, 1]),
        (1, 2, 4, [2, 3]),
        (1, 2, 2, [1]),
        (0, 4, 2, [0]),
        (3, 4, 2, [1]),
        (2, 3, 1, [0]),
    ],
)
def test_which_shards_a_learner_samples(
    rank: int, size: int, num_shards: int, own: list[int]
) -> None:
    assert list(learning.own_shards(range(num_shards), rank, size)) == own


class Learner:
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


def _node(learner: Learner) -> FurtherLearner:
    node = FurtherLearner.__new__(FurtherLearner)
    of_node: Any = node
    of_node._learning, of_node._over = learner, threading.Event()
    return node


@pytest.fixture
def stop(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Set when the node is asked to end."""
    event = threading.Event()
    monkeypatch.setattr(process, "stop_event", lambda: event)
    monkeypatch.setattr(process, "GRACE_SECONDS", 0.05)
    return event


def test_it_learns_until_all_end_and_blocks_no_one_afterwards(stop: threading.Event) -> None:
    learner = Learner(updates=3)
    _node(learner).run()
    assert (learner.steps, learner.skipped) == (3, 3)
    assert stop.is_set()


def test_what_breaks_off_an_update_ends_it(stop: threading.Event) -> None:
    with pytest.raises(ConnectionError, match="reset"):
        _node(Learner(updates=3, error=ConnectionError("reset by peer"))).run()


def test_after_a_crash_elsewhere_it_is_no_crash_of_its_own(stop: threading.Event) -> None:
    stop.set()
    node = _node(Learner(updates=3, error=ConnectionError("reset by peer")))
    node._over.set()  # its process is not to end here
    node.run()


def test_it_ends_though_it_waits_for_one_that_is_gone(
    stop: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    codes: list[int] = []
    monkeypatch.setattr(os, "_exit", codes.append)
    stop.set()
    _node(Learner(updates=3))._end_when_torn_down(stop)
    assert codes == [process.TERMINATED]
