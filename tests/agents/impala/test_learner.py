"""IMPALA's update: a batch against the oracle; RMSProp, annealing, clipping, lag, checkpoints."""

import dataclasses
import pathlib
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from agents.batches import Fetched
from agents.impala.learner import ImpalaUpdate
from agents.learner import Learner
from tests.agents.impala import oracle
from tests.batches import random_batch
from tests.eager import eagerly
from tests.small_agents import gradients_of, make_agent, make_batch, make_update, small_config
from tests.updates import parameters_of, same


@pytest.mark.parametrize("burn_in", [0, 2])
@pytest.mark.parametrize("correction", ["vtrace", "one_step", "epsilon", "none"])
def test_the_loss_of_a_batch_is_the_oracles_sum(correction: str, burn_in: int) -> None:
    config = small_config(
        "impala",
        correction=correction,
        burn_in=burn_in,
        entropy_cost=0.3,
        rho_bar=1.1,
        c_bar=0.9,
        lambda_=0.8,
    )
    update, batch = make_update(config), make_batch(config)
    loss, _ = oracle.loss_of_batch(update, batch, config)
    assert float(update.evaluate(batch).loss) == pytest.approx(loss, rel=1e-4)


@pytest.mark.parametrize("life_loss", [False, True])
def test_a_lost_life_ends_the_episode_if_the_learner_says_so(life_loss: bool) -> None:
    """Seen on row 4: the return of row 3 stops there, and the core state resets."""
    config = small_config("impala", life_loss=life_loss)
    update, batch = make_update(config), random_batch(config)
    lost = np.zeros(batch.life_lost.shape, bool)
    lost[4] = True
    with_loss = batch._replace(life_lost=tf.constant(lost))
    ended = batch._replace(
        reset=tf.constant(lost),
        continuation=tf.constant(np.where(lost[1:], 0, batch.continuation), tf.float32),
    )
    expected = ended if life_loss else batch
    for x, y in zip(gradients_of(update, with_loss), gradients_of(update, expected), strict=True):
        np.testing.assert_array_equal(x, y)
    assert make_agent(config).resets_on_life_loss == life_loss


@pytest.mark.parametrize(
    ("transform", "function"),
    [
        ("none", lambda r: r),
        ("clip", lambda r: np.clip(r, -1, 1)),
        ("asymmetric", lambda r: np.where(r < 0, 0.3, 5.0) * np.tanh(r)),
    ],
)
def test_rewards_are_transformed_first(transform: str, function: Any) -> None:
    config = small_config("impala", reward_transform=transform)
    batch = random_batch(config)
    reward = batch.reward.numpy()
    assert reward.min() < -1 < 1 < reward.max()
    transformed = batch._replace(reward=tf.constant(function(reward), tf.float32))
    update, plain = make_update(config), make_update(small_config("impala"))
    actual = float(update.evaluate(batch).loss)
    assert actual == pytest.approx(float(plain.evaluate(transformed).loss), rel=1e-5)


@pytest.mark.parametrize(
    ("limit", "reward_scale", "clips"), [(40.0, 2.0, False), (40.0, 1e3, True), (None, 1e3, False)]
)
@eagerly()
def test_three_steps_of_annealed_rmsprop_by_hand(
    limit: float | None, reward_scale: float, clips: bool
) -> None:
    """ms ← 0.9 ms + 0.1 g²,  mom ← 0.5 mom + lr g / √(ms + ε),  p ← p − mom: ε inside the root.

    The mean square begins at 1, and g is clipped to a global norm.
    """
    config = small_config(
        "impala",
        learning_rate=1e-2,
        rmsprop_decay=0.9,
        rmsprop_momentum=0.5,
        rmsprop_epsilon=0.5,
        max_gradient_norm=limit,
    )
    update = make_update(dataclasses.replace(config, annealing_frames=4 * config.frames_per_update))
    expected = [p.astype(np.float64) for p in parameters_of(update)]
    squares = [np.ones_like(p) for p in expected]
    momentum = [np.zeros_like(p) for p in expected]
    for step, learning_rate in enumerate([1e-2, 0.75e-2, 0.5e-2]):
        batch = random_batch(config, step, reward_scale=reward_scale)
        gradients = [g.astype(np.float64) for g in gradients_of(update, batch)]
        norm = np.sqrt(sum((g**2).sum() for g in gradients))
        assert (norm > 40.0) == (reward_scale > 2)
        for i, g in enumerate(gradients):
            g = g * 40.0 / norm if clips else g
            squares[i] = 0.9 * squares[i] + 0.1 * g**2
            momentum[i] = 0.5 * momentum[i] + learning_rate * g / np.sqrt(squares[i] + 0.5)
            expected[i] -= momentum[i]
        _, metrics = update(batch)
        assert float(metrics["learning_rate"]) == pytest.approx(learning_rate)
        assert float(metrics["gradient_norm"]) == pytest.approx(norm, rel=1e-4)
        for x, y in zip(parameters_of(update), expected, strict=True):
            np.testing.assert_allclose(x, y, atol=2e-5)
    sizes = np.concatenate([square.ravel() for square in squares])
    assert (sizes < 0.75).any() or reward_scale > 2  # still falling from 1
    assert (sizes > 1.5).any()


@pytest.mark.parametrize(
    ("changes", "frames", "expected"),
    [
        (dict(final_learning_rate=0.04), 56, [0.1, 0.07, 0.04, 0.04]),
        (dict(final_learning_rate=0.4), 56, [0.1, 0.25, 0.4, 0.4]),
        (dict(final_learning_rate=0.04), None, [0.1, 0.1, 0.1, 0.1]),
        (dict(), 70, [0.1, 0.06, 0.02, 0.0]),  # two updates and a half
        (dict(frames_per_step=4), 280, [0.1, 0.06, 0.02, 0.0]),
        (dict(replay_fraction=0.5), 56, [0.1, 0.075, 0.05, 0.025]),  # half of a batch is new
        (dict(burn_in=2), 56, [0.1, 0.05, 0.0, 0.0]),  # another unroll's rows
    ],
)
@eagerly()
def test_the_learning_rate_falls_by_a_number_of_new_frames(
    changes: dict[str, Any], frames: int | None, expected: list[float]
) -> None:
    """An update has 4 unrolls of 7 steps."""
    config = small_config("impala", learning_rate=0.1, annealing_frames=frames, **changes)
    update = make_update(config)
    rates = [float(update(random_batch(config))[1]["learning_rate"]) for _ in expected]
    np.testing.assert_allclose(rates, expected, atol=1e-7)


@eagerly()
def test_a_parameter_that_the_loss_does_not_reach_stays() -> None:
    update = make_update(small_config("impala"))
    network = update.learned_network
    network.unused = tf.Variable([1.0, -2.0])
    with_unused = ImpalaUpdate(network, small_config("impala"))
    assert (
        len(parameters_of(with_unused))
        == len(parameters_of(make_update(small_config("impala")))) + 1
    )
    with_unused(random_batch(small_config("impala")))
    np.testing.assert_array_equal(network.unused, [1.0, -2.0])


def _fetched(update: ImpalaUpdate) -> list[np.ndarray]:
    return [v.numpy() for v in update.network.variables]


@pytest.mark.parametrize("lag", [0, 1, 3])
def test_what_actors_fetch_is_exactly_so_many_updates_old(lag: int) -> None:
    config = small_config("impala", policy_lag=lag)
    update = make_update(config)
    learned = [[v.numpy() for v in update.learned_network.variables]]
    assert same(_fetched(update), learned[0])
    for step in range(1, 9):
        update(random_batch(config, seed=step))
        learned.append([v.numpy() for v in update.learned_network.variables])
        assert same(_fetched(update), learned[max(step - lag, 0)]), step
        assert not same(learned[step], learned[step - 1])


@pytest.mark.parametrize("counted", [2, 6, 40])  # by which the history moves by 0, 1 and 2
def test_it_stays_so_many_updates_old_where_they_are_counted_anew(
    counted: int, tmp_path: pathlib.Path
) -> None:
    """As after a learner was adopted from a run that had made more updates, or fewer."""
    config = small_config("impala", policy_lag=3)
    update = make_update(config)
    learner = Learner(update, Fetched(iter(())))
    learned = [[v.numpy() for v in update.learned_network.variables]]
    for step in range(1, 13):
        if step == 6:
            learner.read_checkpoint(learner.write_checkpoint(str(tmp_path / "5")), counted)
            assert int(update.step) == learner.learner_steps == counted
        update(random_batch(config, seed=step))
        learned.append([v.numpy() for v in update.learned_network.variables])
        assert same(_fetched(update), learned[max(step - 3, 0)]), step


@pytest.mark.parametrize(("lag", "expected"), [(0, 20.0), (2, 22.0), (60, 77.5)])
@eagerly()
def test_parameter_lag_counts_from_the_update_that_acted(lag: int, expected: float) -> None:
    """Fetched at 100, 90, 80 and 50: with a lag of 60, made at 40, 30, 20 and, at least, 0."""
    config = small_config("impala", policy_lag=lag)
    update = make_update(config)
    update.step.assign(100)
    learner_step = tf.constant([100, 90, 80, 50], tf.int64)
    _, metrics = update(random_batch(config)._replace(learner_step=learner_step))
    assert float(metrics["parameter_lag"]) == expected
    assert int(update.step) == 101
