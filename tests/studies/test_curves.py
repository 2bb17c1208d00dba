"""Runs that have a core each."""

import os
import threading

import pytest

from studies import curves
from tests.patience import PATIENCE


def test_as_many_jobs_at_a_time_as_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {3, 5})
    busy, lock, both = set[int](), threading.Lock(), threading.Event()

    def work(job: int, core: int) -> None:
        with lock:
            assert core not in busy
            busy.add(core)
            if busy == {3, 5}:
                both.set()
        assert both.wait(PATIENCE)  # the other core has work at the same time
        with lock:
            busy.remove(core)

    assert sorted(curves.on_cores(range(7), work)) == list(range(7))
    assert curves.alone(5)[-1] == "5"


def test_a_job_that_fails_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0})
    with pytest.raises(ZeroDivisionError):
        list(curves.on_cores([1, 0], lambda job, _: print(1 / job)))
