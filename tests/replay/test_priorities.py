"""Priorities and importance weights against loops, and the way back to a real table."""

import threading
from typing import Any

import numpy as np
import pytest
import reverb
import tensorflow as tf

from replay.layout import Layout
from replay.priorities import PriorityUpdater, importance_weights, mixed_priorities
from replay.structures import TableSpec
from tests.replay import streams


def naive_priority(errors: np.ndarray, mask: np.ndarray, eta: float) -> float:
    real = [abs(e) for e, m in zip(errors, mask, strict=True) if m]
    return eta * max(real) + (1 - eta) * sum(real) / len(real) if real else 0.0


@pytest.mark.parametrize("eta", [0.0, 0.5, 0.9, 1.0])
@pytest.mark.parametrize("compiled", [False, True])
def test_mixed_priorities_are_the_mix_of_largest_and_mean(eta: float, compiled: bool) -> None:
    rng = np.random.default_rng(0)
    errors = rng.normal(size=(7, 5)).astype(np.float32)
    mask = (rng.random((7, 5)) < 0.6).astype(np.float32)
    mask[:, 3] = 0
    function = tf.function(mixed_priorities) if compiled else mixed_priorities
    actual = function(tf.constant(np.abs(errors)), tf.constant(mask), eta)
    expected = [naive_priority(errors[:, b], mask[:, b], eta) for b in range(5)]
    np.testing.assert_allclose(actual, expected, rtol=1e-6)
    assert expected[3] == 0


@pytest.mark.parametrize("garbage", [1e9, np.inf, np.nan])
def test_masked_steps_change_no_priority(garbage: float) -> None:
    mask = tf.constant([[0.0], [1.0], [1.0], [0.0]])
    clean = mixed_priorities(tf.constant([[0.0], [1.0], [3.0], [0.0]]), mask, 0.9)
    dirty = mixed_priorities(tf.constant([[garbage], [1.0], [3.0], [garbage]]), mask, 0.9)
    np.testing.assert_allclose(clean, [2.9], rtol=1e-6)
    np.testing.assert_array_equal(clean, dirty)


@pytest.mark.parametrize("rarest", [1e-4, 1e-60])  # beside the second every other weight is 0
@pytest.mark.parametrize("beta", [0.0, 0.6, 1.0])
def test_importance_weights_undo_the_probabilities(beta: float, rarest: float) -> None:
    probability = np.asarray([0.5, 1e-3, 0.1, rarest])
    size = np.asarray([10, 1000, 50, 100_000])
    raw = [(n * p) ** -beta for n, p in zip(size, probability, strict=True)]
    weights = importance_weights(tf.constant(probability), tf.constant(size), beta)
    np.testing.assert_allclose(weights, np.asarray(raw) / max(raw), rtol=1e-5, atol=1e-30)
    assert np.max(weights) == 1
    assert weights.dtype == tf.float32


def table_of_items() -> tuple[reverb.Server, reverb.Client, list[int]]:
    spec = TableSpec("r2d2", "prioritized", Layout(0, 4, 4), max_size=100)
    cut = streams.blocks([spec], 4)
    server = streams.serve([spec], cut)
    rows = streams.random_stream(np.random.default_rng(0), 1, 21, longest=100)
    streams.write(streams.make_writer(server, [spec], 1, cut), rows)
    client = reverb.Client(f"localhost:{server.port}")
    keys = {int(s.info.key) for s in client.sample("r2d2", 200, emit_timesteps=False)}
    return server, client, sorted(keys)


def test_updates_reach_the_table() -> None:
    server, client, keys = table_of_items()
    updater = PriorityUpdater([client], "r2d2")
    updater.update(np.zeros(len(keys), int), np.asarray(keys, np.uint64), np.zeros(len(keys)))
    chosen = keys[2]
    updater.update(
        np.zeros(2, int), np.asarray([chosen, chosen], np.uint64), np.asarray([9.0, 0.1])
    )
    updater.close()
    samples = list(client.sample("r2d2", 20, emit_timesteps=False))
    assert {int(sample.info.key) for sample in samples} == {chosen}
    assert samples[0].info.priority == 0.1  # to the last digit: no float32 came between
    assert server.port


class SlowClient:
    """Holds every update until it is released."""

    def __init__(self) -> None:
        self.release = threading.Event()
        self.updates: list[dict[int, float]] = []

    def mutate_priorities(self, table: str, updates: dict[int, float]) -> None:
        self.release.wait()
        self.updates.append(updates)


def test_nothing_is_dropped_when_the_server_is_slow() -> None:
    client = SlowClient()
    updater = PriorityUpdater([client], "r2d2", max_waiting=2)
    threading.Timer(0.3, client.release.set).start()
    for key in range(10):
        updater.update(np.zeros(1, int), np.asarray([key], np.uint64), np.ones(1))
    updater.close()
    assert [list(update) for update in client.updates] == [[key] for key in range(10)]
    with pytest.raises(RuntimeError, match="closed"):
        updater.update(np.zeros(1, int), np.zeros(1, np.uint64), np.ones(1))


class BrokenClient(SlowClient):
    def mutate_priorities(self, table: str, updates: dict[int, float]) -> None:
        self.release.wait()
        raise ConnectionError("gone")


def test_errors_of_the_server_reach_the_caller() -> None:
    """Also the one who waits, at that moment, for room in the queue."""
    client = BrokenClient()
    updater = PriorityUpdater([client], "r2d2", max_waiting=1)
    threading.Timer(0.3, client.release.set).start()

    def keep_updating() -> None:
        while True:
            updater.update(np.zeros(1, int), np.zeros(1, np.uint64), np.ones(1))

    with pytest.raises(RuntimeError, match="'r2d2' refused new priorities: gone"):
        keep_updating()
    with pytest.raises(RuntimeError, match="gone"):
        updater.close()


class InterruptedClient:
    """Breaks off the first update, then answers again."""

    server_address = "host:1"

    def __init__(self) -> None:
        self.updates: list[dict[int, float]] = []

    def server_info(self, timeout: float) -> dict[str, Any]:
        """Says that the server is there."""
        return {}

    def mutate_priorities(self, table: str, updates: dict[int, float]) -> None:
        self.updates.append(updates)
        if len(self.updates) == 1:
            raise RuntimeError("Socket closed")


def test_an_update_that_broke_off_is_made_again() -> None:
    client = InterruptedClient()
    updater = PriorityUpdater([client], "r2d2")
    updater.update(np.zeros(1, int), np.asarray([5], np.uint64), np.ones(1))
    updater.close()
    assert client.updates == [{5: 1.0}] * 2


@pytest.mark.parametrize(
    ("priority", "message"),
    [([1.0, -0.5], "got -0.5"), ([1.0, np.nan], "got nan"), ([1.0], r"2 items .* got \(1,\)")],
)
def test_refuses_priorities_that_make_no_sense(priority: list[float], message: str) -> None:
    updater = PriorityUpdater([SlowClient()], "r2d2")
    with pytest.raises(ValueError, match=message):
        updater.update(np.zeros(2, int), np.zeros(2, np.uint64), np.asarray(priority))
    updater.close()
