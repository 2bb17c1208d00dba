"""Clients of a learner: how many fetch, and the cost of it."""

import collections
import threading

import numpy as np
import pytest

from benchmarks import wire
from benchmarks.local_replay import Clients


class _Counted:
    """Serves one number, and counts who fetched it."""

    def __init__(self) -> None:
        self.names: collections.Counter[str] = collections.Counter()
        self._lock = threading.Lock()

    def get_variables(self, names: list[str]) -> list[list[np.ndarray]]:
        with self._lock:
            self.names.update(names)
        return [[np.zeros(3)] for _ in names]


def test_each_client_fetches_once_and_then_as_often_as_is_asked() -> None:
    source = _Counted()
    with Clients(source.get_variables, 3) as clients:
        assert source.names == {"policy": 3}
        clients.begin(2)
        clients.begin(0)
        clients.begin(5)
        first = clients.wait()
        assert source.names == {"policy": 10}
        assert clients.seconds() >= first > 0.0
        assert source.names == {"policy": 10}


def test_a_cost_is_the_growth_of_each_counter_over_the_number_sent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    counters = {"bytes": 100.0, "server": 2.0, "client": 1.0}
    monkeypatch.setattr(wire, "_bytes", lambda: counters["bytes"])

    def work() -> int:
        counters.update(bytes=180.0, server=2.4, client=1.8)
        return 8

    found = wire.cost(work, lambda: counters["server"], lambda: counters["client"])
    assert found == pytest.approx((10.0, 0.05, 0.1))
