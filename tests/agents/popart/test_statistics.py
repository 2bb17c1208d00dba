"""The statistics against loops, their limits, and outputs that survive their changes."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import sonnet as snt
import tensorflow as tf

from agents.popart.config import Config
from agents.popart.statistics import PopArt, moving_average, rollout_means

K, H = 4, 5


def _layer() -> snt.Linear:
    tf.random.set_seed(0)
    layer = snt.Linear(K)
    layer(tf.zeros([1, H]))
    layer.b.assign(tf.random.normal([K]))
    return layer


def _popart(layer: snt.Linear | None = None) -> PopArt:
    return PopArt(layer or _layer(), Config(statistics_decay=0.1))


def _values(popart: PopArt, layer: snt.Linear, x: np.ndarray) -> np.ndarray:
    """v = σ n + μ, in float64."""
    n = x @ layer.w.numpy().astype(np.float64) + layer.b.numpy()
    return popart.sigma.numpy() * n + popart.mu.numpy()


@pytest.mark.parametrize("wrap", [lambda f: f, tf.function], ids=["eager", "traced"])
@pytest.mark.parametrize("decay", [3e-4, 0.3, 1.0])
def test_moving_average_equals_one_update_after_another(decay: float, wrap: Callable) -> None:
    rng = np.random.default_rng(0)
    task = rng.choice([0, 2, 3], size=20)
    counts = rng.random(20) < 0.8
    assert 0 < counts.sum() < 20
    values, average = rng.normal(size=20), rng.normal(size=K)
    expected = average.copy()
    for x, k, counts_for_it in zip(values, task, counts, strict=True):
        if counts_for_it:
            expected[k] = (1 - decay) * expected[k] + decay * x
    is_task = np.eye(K)[task] * counts[:, None]
    actual = wrap(moving_average)(
        tf.constant(average), tf.constant(values), tf.constant(is_task), decay
    )
    np.testing.assert_allclose(actual, expected, rtol=1e-12)
    assert actual[1] == average[1]


def test_targets_are_averaged_over_the_real_steps_of_a_rollout() -> None:
    target = tf.constant([[1.0, np.nan, np.nan], [3.0, np.nan, 7.0]])
    mask = tf.constant([[1.0, 0.0, 0.0], [1.0, 0.0, 1.0]])
    is_task, mean = rollout_means(target, mask, tf.constant([2, 0, 1], tf.int64), num_tasks=3)
    np.testing.assert_array_equal(is_task, [[0, 0, 1], [0, 0, 0], [0, 1, 0]])
    assert mean.numpy()[[0, 2]].tolist() == [2.0, 7.0]
    assert np.isfinite(mean).all()


@pytest.mark.parametrize(
    ("mu", "nu", "sigma"),
    [
        (0.0, 1.0, 1.0),
        (3.0, 25.0, 4.0),
        (1e4, 1e8 + 1.0, 1.0),  # float32 would see no variance
        (5.0, 25.0 + 1e-9, 1e-4),
        (5.0, 25.0 - 1e-9, 1e-4),  # rounding: the root of a negative number
        (0.0, 1e14, 1e6),
    ],
)
def test_sigma_is_a_clipped_standard_deviation(mu: float, nu: float, sigma: float) -> None:
    popart = _popart()
    popart.mu.assign([mu] * K)
    popart.nu.assign([nu] * K)
    np.testing.assert_allclose(popart.sigma, [sigma] * K, rtol=1e-7)


def _adapt(popart: PopArt, targets: np.ndarray) -> Any:
    """Rollouts of every task but 1."""
    task = np.resize([0, 2, 3, 3, 2, 0], targets.shape[1])
    target = tf.constant(targets, tf.float32)
    return popart.adapt(target, tf.ones_like(target), tf.constant(task))


@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e3, 1e9], ids=str)
def test_no_value_changes_and_absent_tasks_keep_everything(scale: float) -> None:
    """The scales make σ reach both of its limits too, before or after."""
    layer = _layer()
    popart = _popart(layer)
    popart.mu.assign([0.3, -0.7, 2.0, 0.0])
    popart.nu.assign([0.1, 0.9, 4.0 + 1e-12, 1.0])
    x = np.random.default_rng(0).normal(size=(50, H))
    targets = np.random.default_rng(1).normal(size=(3, 6)) * scale
    before = _values(popart, layer, x)
    old = [v.numpy() for v in (popart.mu, popart.nu, layer.b, layer.w)]
    metrics = _adapt(popart, targets)
    new = [v.numpy() for v in (popart.mu, popart.nu, layer.b, layer.w)]
    after = _values(popart, layer, x)
    tolerance = 1e-5 * np.maximum(1.0, np.abs(popart.mu) + popart.sigma)
    assert (np.abs(after - before) < tolerance).all()
    for x_old, x_new in zip(old, new, strict=True):
        np.testing.assert_array_equal(x_old[..., 1], x_new[..., 1])
        assert (x_old[..., [0, 2, 3]] != x_new[..., [0, 2, 3]]).any(axis=0).all()
    assert (popart.sigma.numpy() >= 1e-4).all()
    assert (popart.sigma.numpy() <= 1e6).all()
    np.testing.assert_allclose(metrics["mu"], popart.mu, rtol=1e-6)
    np.testing.assert_allclose(metrics["sigma"], popart.sigma, rtol=1e-6)
    assert metrics["mu"].dtype == metrics["sigma"].dtype == tf.float32
