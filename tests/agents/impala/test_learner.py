"""IMPALA's update: a batch against the oracle; RMSProp, annealing, clipping, lag, checkpoints."""

from typing import Any

import numpy as np
import pytest
import tensorflow as tf
import tree

from agents.impala.agent import Config, make
from agents.impala.distributions import Categorical
from agents.impala.learner import ImpalaUpdate
from agents.impala.vtrace import Hyperparameters, Outputs
from replay.structures import Batch, TrainedRows
from tests.agents.impala import oracle
from tests.agents.impala.batches import (
    ENDS,
    annealed_in,
    gradients_of,
    make_update,
    outputs_of,
    small_config,
    with_ends,
)
from tests.batches import NUM_ACTIONS, random_batch
from tests.eager import eagerly
from tests.updates import parameters_of, same


def _batch(config: Config, seed: int = 0) -> Batch:
    return with_ends(random_batch(config, seed), ENDS)


def _expected_loss(update: ImpalaUpdate, batch: Batch, config: Config) -> float:
    columns = range(config.batch_size)
    log_pi, value = (
        np.stack(x, axis=1)
        for x in zip(*(outputs_of(update, batch, b) for b in columns), strict=True)
    )
    trained = slice(config.burn_in, None)
    policy = Categorical(log_pi[trained][:-1])
    outputs = Outputs(policy, value[trained][..., 0], shift=0.0, scale=1.0)
    rows = TrainedRows(*(x.numpy() for x in batch.trained(config.burn_in)))
    ratio = np.exp(oracle.log_ratio(outputs, rows))[rows.mask > 0]
    assert (ratio > config.rho_bar).any()
    assert (ratio < config.c_bar).any()
    hyperparameters = Hyperparameters(
        discount=config.discount,
        lambda_=config.lambda_,
        rho_bar=config.rho_bar,
        c_bar=config.c_bar,
        policy_gradient_cost=1.0,
        baseline_cost=config.baseline_cost,
        entropy_cost=config.entropy_cost,
    )
    return oracle.losses(outputs, rows, hyperparameters, config.correction)[0]


@pytest.mark.parametrize("burn_in", [0, 2])
@pytest.mark.parametrize("correction", ["vtrace", "one_step", "epsilon", "none"])
def test_the_loss_of_a_batch_is_the_oracles_sum(correction: str, burn_in: int) -> None:
    config = small_config(
        correction=correction,
        burn_in=burn_in,
        entropy_cost=0.3,
        rho_bar=1.1,
        c_bar=0.9,
        lambda_=0.8,
    )
    update, batch = make_update(config), _batch(config)
    expected = _expected_loss(update, batch, config)
    assert float(update.evaluate(batch).loss) == pytest.approx(expected, rel=1e-4)


@eagerly()
def test_what_masked_rows_hold_changes_nothing() -> None:
    config = small_config()
    update, batch = make_update(config), _batch(config)
    real = batch.mask > 0
    assert not real.numpy().all()

    def filled(x: tf.Tensor, value: float) -> tf.Tensor:
        return tf.where(real, x, tf.cast(value, x.dtype))

    dirty = batch._replace(
        action=filled(batch.action, NUM_ACTIONS - 1),
        reward=filled(batch.reward, np.nan),
        continuation=filled(batch.continuation, np.nan),
        log_probability=filled(batch.log_probability, np.nan),
    )
    for x, y in zip(gradients_of(update, batch), gradients_of(update, dirty), strict=True):
        np.testing.assert_array_equal(x, y)
    clean, other = make_update(config)(batch)[1], make_update(config)(dirty)[1]
    for name in clean:
        assert float(clean[name]) == float(other[name]), name


def test_no_gradient_reaches_the_burn_in_or_the_bootstrap() -> None:
    config = small_config(burn_in=2)
    update, batch = make_update(config), random_batch(config)
    observation = batch.inputs.observation
    with tf.GradientTape() as tape:
        tape.watch([observation, *batch.core_state])
        loss = update.evaluate(batch).loss
    by_row, *states = tape.gradient(loss, [observation, *batch.core_state])
    by_row = np.abs(by_row.numpy()).sum(axis=(1, 2))
    assert (by_row[:2] == 0).all()
    assert (by_row[2:-1] > 0).all()
    assert by_row[-1] == 0
    assert all(s is None or not np.any(s) for s in states)


@pytest.mark.parametrize("episode_start", [None, 0, 3])
def test_the_learner_sees_the_log_probabilities_that_the_actor_stored(
    episode_start: int | None,
) -> None:
    """Same parameters, the state from before the first step: every ratio is 1."""
    config = small_config(batch_size=1)
    update, batch = make_update(config), random_batch(config)
    reset = np.zeros(batch.reset.shape, bool)
    if episode_start is not None:
        reset[episode_start] = True
    policy = make(config).make_policy(update.network, np.array([0]), 1, 0)
    state = batch.core_state
    actions, stored = [], []
    for t in range(config.length):
        if reset[t]:
            state = update.network.initial_state(1)
        output = policy(tree.map_structure(lambda x, t=t: x[t], batch.inputs), state)
        state = output.core_state
        actions.append(output.action)
        stored.append(output.log_probability)
    batch = batch._replace(
        reset=tf.constant(reset), action=tf.stack(actions), log_probability=tf.stack(stored)
    )
    np.testing.assert_allclose(update.evaluate(batch).log_ratio, 0.0, atol=1e-6)
    _, metrics = update(batch)
    assert float(metrics["mean_rho"]) == pytest.approx(1.0)


@pytest.mark.parametrize("life_loss", [False, True])
def test_a_lost_life_ends_the_episode_if_the_learner_says_so(life_loss: bool) -> None:
    """Seen on row 4: the return of row 3 stops there, and the core state resets."""
    config = small_config(life_loss=life_loss)
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
    assert make(config).resets_on_life_loss == life_loss


@pytest.mark.parametrize(
    ("transform", "function"),
    [
        ("none", lambda r: r),
        ("clip", lambda r: np.clip(r, -1, 1)),
        ("asymmetric", lambda r: np.where(r < 0, 0.3, 5.0) * np.tanh(r)),
    ],
)
def test_rewards_are_transformed_first(transform: str, function: Any) -> None:
    config = small_config(reward_transform=transform)
    batch = random_batch(config)
    reward = batch.reward.numpy()
    assert reward.min() < -1 < 1 < reward.max()
    transformed = batch._replace(reward=tf.constant(function(reward), tf.float32))
    update, plain = make_update(config), make_update(small_config())
    actual = float(update.evaluate(batch).loss)
    assert actual == pytest.approx(float(plain.evaluate(transformed).loss), rel=1e-5)


@eagerly()
def test_three_steps_of_annealed_rmsprop_by_hand() -> None:
    """ms ← 0.9 ms + 0.1 g²,  mom ← 0.5 mom + lr g / √(ms + ε),  p ← p − mom: ε inside the root.

    The mean square begins at 1.
    """
    config = small_config(
        learning_rate=1e-2,
        rmsprop_decay=0.9,
        rmsprop_momentum=0.5,
        rmsprop_epsilon=0.5,
        max_gradient_norm=None,
    )
    update = make_update(annealed_in(4, config))
    expected = [p.astype(np.float64) for p in parameters_of(update)]
    squares = [np.ones_like(p) for p in expected]
    momentum = [np.zeros_like(p) for p in expected]
    roots = []
    for step, learning_rate in enumerate([1e-2, 0.75e-2, 0.5e-2]):
        batch = random_batch(config, seed=step)
        gradients = gradients_of(update, batch)
        for i, g in enumerate(gradients):
            squares[i] = 0.9 * squares[i] + 0.1 * g.astype(np.float64) ** 2
            root = np.sqrt(squares[i] + 0.5)
            momentum[i] = 0.5 * momentum[i] + learning_rate * g / root
            expected[i] -= momentum[i]
            roots.append(squares[i].ravel())
        _, metrics = update(batch)
        assert float(metrics["learning_rate"]) == pytest.approx(learning_rate)
        for x, y in zip(parameters_of(update), expected, strict=True):
            np.testing.assert_allclose(x, y, atol=2e-5)
    sizes = np.concatenate(roots)
    assert (sizes < 0.75).any()  # still falling from 1
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
    config = small_config(learning_rate=0.1, annealing_frames=frames, **changes)
    update = make_update(config)
    rates = [float(update(random_batch(config))[1]["learning_rate"]) for _ in expected]
    np.testing.assert_allclose(rates, expected, atol=1e-7)


@pytest.mark.parametrize(
    ("limit", "reward_scale", "clips"), [(40.0, 0.5, False), (40.0, 1e3, True), (None, 1e3, False)]
)
@eagerly()
def test_gradients_are_clipped_to_a_global_norm(
    limit: float | None, reward_scale: float, clips: bool
) -> None:
    config = small_config(max_gradient_norm=limit, rmsprop_decay=0.75)
    update, batch = make_update(config), random_batch(config, reward_scale=reward_scale)
    gradients = gradients_of(update, batch)
    norm = np.sqrt(sum((g**2).sum() for g in gradients))
    assert (norm > 40.0) == (reward_scale > 1)
    _, metrics = update(batch)
    assert float(metrics["gradient_norm"]) == pytest.approx(norm, rel=1e-4)
    scale = 40.0 / norm if clips else 1.0
    for square, g in zip(update._optimizer.ms, gradients, strict=True):
        np.testing.assert_allclose(square, 0.75 + 0.25 * (scale * g) ** 2, rtol=1e-3)


@eagerly()
def test_a_parameter_that_the_loss_does_not_reach_stays() -> None:
    update = make_update(small_config())
    network = update.learned_network
    network.unused = tf.Variable([1.0, -2.0])
    with_unused = ImpalaUpdate(network, small_config())
    assert len(parameters_of(with_unused)) == len(parameters_of(make_update(small_config()))) + 1
    with_unused(random_batch(small_config()))
    np.testing.assert_array_equal(network.unused, [1.0, -2.0])


def _fetched(update: ImpalaUpdate) -> list[np.ndarray]:
    return [v.numpy() for v in update.network.variables]


@pytest.mark.parametrize("lag", [0, 1, 3])
def test_what_actors_fetch_is_exactly_so_many_updates_old(lag: int) -> None:
    config = small_config(policy_lag=lag)
    update = make_update(config)
    learned = [[v.numpy() for v in update.learned_network.variables]]
    assert same(_fetched(update), learned[0])
    for step in range(1, 9):
        update(random_batch(config, seed=step))
        learned.append([v.numpy() for v in update.learned_network.variables])
        assert same(_fetched(update), learned[max(step - lag, 0)]), step
        assert not same(learned[step], learned[step - 1])


@pytest.mark.parametrize(("lag", "expected"), [(0, 20.0), (2, 22.0), (60, 77.5)])
@eagerly()
def test_parameter_lag_counts_from_the_update_that_acted(lag: int, expected: float) -> None:
    """Fetched at 100, 90, 80 and 50: with a lag of 60, made at 40, 30, 20 and, at least, 0."""
    config = small_config(policy_lag=lag)
    update = make_update(config)
    update.step.assign(100)
    learner_step = tf.constant([100, 90, 80, 50], tf.int64)
    _, metrics = update(random_batch(config)._replace(learner_step=learner_step))
    assert float(metrics["parameter_lag"]) == expected
    assert int(update.step) == 101
