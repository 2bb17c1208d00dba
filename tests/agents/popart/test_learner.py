"""PopArt's update of a batch of several tasks, and the order of its parts."""

import numpy as np
import pytest
import tensorflow as tf

from agents.impala import agent as impala
from agents.impala.learner import ImpalaUpdate
from agents.popart.agent import make
from replay.structures import Batch
from tests.agents.impala import oracle
from tests.batches import environment_spec
from tests.eager import eagerly
from tests.small_agents import (
    ABSENT,
    NUM_TASKS,
    TASKS,
    gradients_of,
    make_batch,
    make_update,
    small_config,
    statistics_of,
)

SCALED = 3  # the task whose rewards are multiplied


def test_the_loss_of_a_batch_is_the_oracles_sum() -> None:
    config = small_config("popart", entropy_cost=0.3)
    update, batch = make_update(config), make_batch(config)
    evaluation = update.evaluate(batch)
    statistics = statistics_of(update)  # Equations 11 and 12
    mu, sigma = statistics.mu.numpy()[TASKS], statistics.sigma.numpy()[TASKS]
    loss, targets = oracle.loss_of_batch(update, batch, config, mu, sigma, TASKS.tolist())
    assert float(evaluation.loss) == pytest.approx(loss, rel=1e-4)
    real = batch.mask.numpy() > 0
    np.testing.assert_allclose(evaluation.target.numpy()[real], targets[real], atol=1e-4)


def test_without_normalisation_and_tasks_it_is_impala() -> None:
    """The gradients are equal bit for bit."""
    config = small_config("popart", normalise=False, num_tasks=1)
    batch = make_batch(config)
    tf.random.set_seed(0)
    plain = impala.make(config).make_update(environment_spec())
    assert isinstance(plain, ImpalaUpdate)
    expected = gradients_of(plain, batch)
    for x, y in zip(gradients_of(make_update(config), batch), expected, strict=True):
        np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize("normalise", [True, False])
def test_an_unroll_trains_the_value_of_its_own_task_alone(normalise: bool) -> None:
    config = small_config("popart", normalise=normalise)
    update = make_update(config)
    gradients = gradients_of(update, make_batch(config))
    by_task = [g for g in gradients if g.shape[-1] == NUM_TASKS]
    assert len(by_task) == 2  # weights and bias
    for gradient in by_task:
        assert (gradient[..., ABSENT] == 0).all()
        assert (gradient[..., [0, 1, 3]] != 0).any(axis=tuple(range(gradient.ndim - 1))).all()


def test_the_scale_of_one_tasks_rewards_changes_no_update() -> None:
    """Once the statistics have settled, thousandfold rewards move the parameters alike."""
    config = small_config("popart", learning_rate=1e-2)
    update, scaled = make_update(config), make_update(config)
    for step in range(30):
        batch = make_batch(config, seed=step)
        update(batch)
        scaled(batch)
    settled = statistics_of(scaled)
    factor = np.where(np.arange(NUM_TASKS) == SCALED, 1_000.0, 1.0)
    settled.mu.assign(settled.mu * factor)
    settled.nu.assign(settled.nu * factor**2)
    before = [v.numpy() for v in update.learned_network.trainable_variables]
    for step in range(30, 50):
        batch = make_batch(config, seed=step)
        reward = tf.where(TASKS == SCALED, 1_000.0 * batch.reward, batch.reward)
        larger = batch._replace(reward=reward)
        losses = [float(u.evaluate(b).loss) for u, b in ((update, batch), (scaled, larger))]
        assert losses[0] == pytest.approx(losses[1], rel=1e-3)
        update(batch)
        _, metrics = scaled(larger)
    after, other = (
        [v.numpy() for v in u.learned_network.trainable_variables] for u in (update, scaled)
    )
    for x, y, start in zip(after, other, before, strict=True):
        assert np.abs(x - start).max() > 0.02
        np.testing.assert_allclose(x, y, atol=2e-4)
    sigma = statistics_of(update).sigma.numpy()
    np.testing.assert_allclose(metrics["sigma"], sigma * factor, rtol=1e-3)


@pytest.mark.parametrize("normalise", [True, False])
def test_a_viewer_is_told_each_tasks_value_in_its_own_units(normalise: bool) -> None:
    config = small_config("popart", normalise=normalise)
    update, agent = make_update(config), make(config)
    n = np.random.default_rng(0).normal(size=(5, NUM_TASKS)).astype(np.float32)
    for task in range(NUM_TASKS):
        told = agent.estimates(update, {"value": tf.constant(n)}, task)
        assert list(told) == ["V"]
        expected = n[:, task]
        if normalise:
            statistics = statistics_of(update)
            mu, sigma = statistics.mu.numpy()[task], statistics.sigma.numpy()[task]
            expected = sigma * expected + mu
        np.testing.assert_allclose(told["V"], expected, rtol=1e-5)


def _values(update: ImpalaUpdate, batch: Batch) -> np.ndarray:
    """Every task's value on every row of every unroll, `[B, T + 1, K]`."""
    statistics = statistics_of(update)
    n = np.stack([oracle.outputs_of(update, batch, b)[1] for b in range(len(TASKS))])
    return statistics.sigma.numpy() * n + statistics.mu.numpy()


@eagerly()
def test_first_the_optimizer_then_the_statistics_then_the_outputs() -> None:
    """With statistics that never change there is nothing after the optimizer's step.

    So both steps were taken under the old statistics, and what followed changed no value.
    """
    config, fixed = small_config("popart"), small_config("popart", statistics_decay=0.0)
    update, optimizer_alone = make_update(config), make_update(fixed)
    batch = make_batch(config, reward_scale=20.0)
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
    config = small_config("popart", learning_rate=0.1, burn_in=burn_in)
    update, batch = make_update(config), make_batch(config)
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
