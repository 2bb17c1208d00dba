"""Priorities and importance weights against loops, and the way back to a real table."""

import threading
from collections.abc import Callable
from typing import Any
from unittest import mock

import numpy as np
import pytest
import reverb
import tensorflow as tf

from replay.layout import Layout
from replay.priorities import importance_weights, mixed_priorities
from replay.priority_updater import PriorityUpdater
from replay.structures import TableSpec
from tests.patience import wait_for
from tests.replay import streams


def naive_priority(errors: np.ndarray, mask: np.ndarray, eta: float) -> float:
    real = [abs(e) for e, m in zip(errors, mask, strict=True) if m]
    return eta * max(real) + (1 - eta) * sum(real) / len(real) if real else 0.0


@pytest.mark.parametrize(
    ("eta", "wrap"), [*((eta, lambda f: f) for eta in (0.0, 0.5, 0.9, 1.0)), (0.9, tf.function)]
)
def test_mixed_priorities_are_the_mix_of_largest_and_mean(eta: float, wrap: Callable) -> None:
    """Only real steps count, whatever the others hold."""
    rng = np.random.default_rng(0)
    errors = np.abs(rng.normal(size=(7, 5))).astype(np.float32)
    mask = (rng.random((7, 5)) < 0.6).astype(np.float32)
    mask[:, 3] = 0
    errors[mask == 0] = np.resize([np.nan, np.inf, 1e9], (mask == 0).sum())
    actual = wrap(mixed_priorities)(tf.constant(errors), tf.constant(mask), eta)
    expected = [naive_priority(errors[:, b], mask[:, b], eta) for b in range(5)]
    np.testing.assert_allclose(actual, expected, rtol=1e-6)
    assert expected[3] == 0


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


def test_updates_reach_the_table() -> None:
    spec = TableSpec("r2d2", "prioritized", Layout(0, 4, 4), max_size=100)
    server = streams.filled([spec], [1.0] * 5, streams.blocks([spec], 4))
    client = reverb.Client(f"localhost:{server.port}")
    keys = sorted({int(s.info.key) for s in client.sample("r2d2", 200, emit_timesteps=False)})
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


def client_that(writes: Callable[[], Any]) -> mock.Mock:
    """A client that notes each update, and then does so."""
    client = mock.Mock(server_address="host:1")
    client.mutate_priorities.side_effect = lambda *_, **__: writes()
    return client


def _release_when_full(updater: PriorityUpdater, release: threading.Event) -> None:
    """Lets the server go on when the next caller would have to wait."""

    def watch() -> None:
        wait_for(updater._waiting.full)
        release.set()

    threading.Thread(target=watch).start()


def test_nothing_is_dropped_when_the_server_is_slow() -> None:
    release = threading.Event()
    client = client_that(release.wait)
    updater = PriorityUpdater([client], "r2d2", max_waiting=2)
    _release_when_full(updater, release)
    for key in range(10):
        updater.update(np.zeros(1, int), np.asarray([key], np.uint64), np.ones(1))
    updater.close()
    made = [call.kwargs["updates"] for call in client.mutate_priorities.call_args_list]
    assert made == [{key: 1.0} for key in range(10)]
    with pytest.raises(RuntimeError, match="closed"):
        updater.update(np.zeros(1, int), np.zeros(1, np.uint64), np.ones(1))


def test_errors_of_the_server_reach_the_caller() -> None:
    """The error also reaches a caller that waits for room in the queue."""
    release = threading.Event()

    def breaks() -> None:
        release.wait()
        raise ConnectionError("gone")

    updater = PriorityUpdater([client_that(breaks)], "r2d2", max_waiting=1)
    _release_when_full(updater, release)

    def keep_updating() -> None:
        while True:
            updater.update(np.zeros(1, int), np.zeros(1, np.uint64), np.ones(1))

    with pytest.raises(RuntimeError, match="'r2d2' refused new priorities: gone"):
        keep_updating()
    with pytest.raises(RuntimeError, match="gone"):
        updater.close()


def test_an_update_that_broke_off_is_made_again() -> None:
    client = mock.Mock(server_address="host:1")
    client.mutate_priorities.side_effect = [RuntimeError("Socket closed"), None]
    updater = PriorityUpdater([client], "r2d2")
    updater.update(np.zeros(1, int), np.asarray([5], np.uint64), np.ones(1))
    updater.close()
    assert client.mutate_priorities.call_args_list == [mock.call("r2d2", updates={5: 1.0})] * 2


@pytest.mark.parametrize(
    ("priority", "message"),
    [([1.0, -0.5], "got -0.5"), ([1.0, np.nan], "got nan"), ([1.0], r"2 items .* got \(1,\)")],
)
def test_refuses_priorities_that_make_no_sense(priority: list[float], message: str) -> None:
    updater = PriorityUpdater([mock.Mock()], "r2d2")
    with pytest.raises(ValueError, match=message):
        updater.update(np.zeros(2, int), np.zeros(2, np.uint64), np.asarray(priority))
    updater.close()
