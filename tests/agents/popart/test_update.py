"""PopArt's update as a whole: the order of its parts, metrics, checkpoints, reproducibility."""

from pathlib import Path

import numpy as np
import pytest

from agents.impala.learner import ImpalaUpdate
from agents.learner import Learner
from replay.structures import Batch
from tests.agents.impala.batches import outputs_of
from tests.agents.popart.batches import (
    ABSENT,
    TASKS,
    batch_of_tasks,
    make_update,
    small_config,
    statistics_of,
)
from tests.eager import eagerly


def _values(update: ImpalaUpdate, batch: Batch) -> np.ndarray:
    """Every task's value on every row of every unroll, `[B, T + 1, K]`."""
    statistics = statistics_of(update)
    n = np.stack([outputs_of(update, batch, b)[1] for b in range(len(TASKS))])
    return statistics.sigma.numpy() * n + statistics.mu.numpy()


@eagerly()
def test_first_the_optimizer_then_the_statistics_then_the_outputs() -> None:
    """With statistics that never change there is nothing after the optimizer's step.

    So both steps were taken under the old statistics, and what followed changed no value.
    """
    config, fixed = small_config(), small_config(statistics_decay=0.0)
    update, optimizer_alone = make_update(config), make_update(fixed)
    batch = batch_of_tasks(config, reward_scale=20.0)
    old = statistics_of(update).sigma.numpy()
    update(batch)
    optimizer_alone(batch)
    changed = np.abs(statistics_of(update).sigma.numpy() / old - 1)
    assert (changed[[0, 1, 3]] > 0.05).all()
    assert changed[ABSENT] == 0
    np.testing.assert_allclose(
        _values(update, batch), _values(optimizer_alone, batch), rtol=1e-5, atol=1e-5
    )


@pytest.mark.parametrize("burn_in", [0, 2])
@eagerly()
def test_statistics_follow_the_targets_from_before_the_step(burn_in: int) -> None:
    config = small_config(learning_rate=0.1, burn_in=burn_in)
    update, batch = make_update(config), batch_of_tasks(config)
    statistics = statistics_of(update)
    mu, nu = statistics.mu.numpy(), statistics.nu.numpy()
    targets, real = update.evaluate(batch).target.numpy(), batch.mask.numpy()[burn_in:] > 0
    for b, task in enumerate(TASKS):
        mean = targets[real[:, b], b].mean(dtype=np.float64)
        mu[task] = 0.9 * mu[task] + 0.1 * mean
        nu[task] = 0.9 * nu[task] + 0.1 * mean**2
    _, metrics = update(batch)
    np.testing.assert_allclose(statistics.mu, mu, rtol=1e-5)
    np.testing.assert_allclose(statistics.nu, nu, rtol=1e-5)
    np.testing.assert_allclose(metrics["mu"], mu, rtol=1e-5)
    np.testing.assert_allclose(metrics["sigma"], np.sqrt(nu - mu**2), rtol=1e-5)


def test_an_eager_update_equals_a_traced_one() -> None:
    config = small_config()
    traced, eager = make_update(config), make_update(config)
    traced(batch_of_tasks(config))
    with eagerly():
        eager(batch_of_tasks(config))
    for x, y in zip(traced.variables, eager.variables, strict=True):
        np.testing.assert_allclose(x, y, atol=1e-5)


def test_a_checkpoint_holds_the_statistics_and_reproduces_the_next_updates(tmp_path: Path) -> None:
    config = small_config()
    update = make_update(config)
    for step in range(3):
        update(batch_of_tasks(config, seed=step))
    learner = Learner(update, iter(()))
    path = learner.write_checkpoint(str(tmp_path / "learner"))
    restored = make_update(config, seed=5)
    Learner(restored, iter(())).read_checkpoint(path)
    old, new = statistics_of(update), statistics_of(restored)
    assert (old.mu.numpy() == new.mu.numpy()).all()
    assert (old.nu.numpy() == new.nu.numpy()).all()
    for step in range(3, 6):
        batch = batch_of_tasks(config, seed=step)
        update(batch)
        restored(batch)
        for x, y in zip(update.variables, restored.variables, strict=True):
            np.testing.assert_array_equal(x, y)
