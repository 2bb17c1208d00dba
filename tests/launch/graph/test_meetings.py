"""The learners of an agent find each other, and find each other anew when one was started again."""

import socket
from types import SimpleNamespace
from typing import Any

import pytest

from agents import several_learners
from launch.graph import meetings, process
from launch.graph.meetings import Meetings
from launch.graph.servers import StoppedError


def test_nobody_hears_of_others_before_all_have_come() -> None:
    found = Meetings()
    assert found.come("impala", 2, 3, "c:1") == []
    assert found.come("impala", 0, 3, "a:1") == []
    assert found.come("impala", 0, 3, "a:1") == []  # asks again
    assert found.come("impala", 1, 3, "b:1") == ["a:1", "b:1", "c:1"]
    for rank, address in enumerate(("a:1", "b:1", "c:1")):
        assert found.come("impala", rank, 3, address) == ["a:1", "b:1", "c:1"]


def test_each_agent_has_a_meeting_of_its_own() -> None:
    found = Meetings()
    assert found.come("impala", 0, 2, "a:1") == []
    assert found.come("r2d2", 1, 2, "b:1") == []
    assert found.come("impala", 1, 2, "c:1") == ["a:1", "c:1"]


def test_who_comes_again_meets_those_who_come_again() -> None:
    found = Meetings()
    found.come("impala", 0, 2, "a:1")
    found.come("impala", 1, 2, "b:1")
    assert found.come("impala", 1, 2, "b:2") == []  # not the one that knew b:1
    assert found.come("impala", 0, 2, "a:2") == ["a:2", "b:2"]
    assert found.come("impala", 1, 2, "b:2") == ["a:2", "b:2"]


def test_who_was_started_again_before_all_came_counts_once() -> None:
    found = Meetings()
    assert found.come("impala", 0, 2, "a:1") == []
    assert found.come("impala", 0, 2, "a:2") == []
    assert found.come("impala", 1, 2, "b:1") == ["a:2", "b:1"]


def test_one_alone_asks_nobody() -> None:
    assert meetings.join(None, "r2d2", 0, 1) is several_learners.ALONE


def test_several_are_put_together_in_the_order_of_their_ranks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made: list[tuple[list[str], int]] = []
    monkeypatch.setattr(meetings, "Together", lambda *arguments: made.append(arguments))
    monkeypatch.setattr(process, "wait_for_stop", lambda seconds: False)
    known = Meetings()
    known.come("r2d2", 0, 2, "first:1")
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        address = f"localhost:{server.getsockname()[1]}"
        client: Any = SimpleNamespace(server_address=address, meet=known.come)
        meetings.join(client, "r2d2", 1, 2)
    ((addresses, rank),) = made
    assert rank == 1
    assert addresses[0] == "first:1"
    assert addresses[1].startswith("127.0.0.1:")  # the way to the coordinator


def test_who_waits_for_others_can_be_asked_to_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "wait_for_stop", lambda seconds: True)
    client = SimpleNamespace(server_address="localhost:1", meet=Meetings().come)
    with pytest.raises(StoppedError, match="waiting for the other learners of r2d2"):
        meetings.join(client, "r2d2", 0, 2)
