"""What an update makes of a batch: against the oracle, and the mistakes that others have made."""

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
    gradients_of,
    make_update,
    outputs_of,
    small_config,
    with_ends,
)
from tests.batches import NUM_ACTIONS, random_batch
from tests.eager import eagerly


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
