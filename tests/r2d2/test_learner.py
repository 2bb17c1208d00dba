"""R2D2's update: a batch against an oracle, and each mistake that others have made."""

from typing import Any

import numpy as np
import pytest
import tensorflow as tf
import tree

from replay.structures import UNKNOWN, PriorityInput
from tests.batches import random_batch
from tests.eager import eagerly
from tests.r2d2 import oracle
from tests.small_agents import (
    ITEMS,
    gradients_of,
    make_agent,
    make_batch,
    make_update,
    small_config,
)
from tests.updates import parameters_of, same


@pytest.mark.parametrize(("burn_in", "lstm_size"), [(3, 6), (0, 0)])
@eagerly()
def test_update_equals_the_oracle(burn_in: int, lstm_size: int) -> None:
    """With a target network of its own, so that it must be burned in with its own weights."""
    config = small_config("r2d2", burn_in=burn_in, lstm_size=lstm_size, rescale=False)
    num_real = [burn_in + 3, 6, burn_in + 1, burn_in + 6]
    items = dict(ITEMS, padding=[0, burn_in, 0, 0], num_real=num_real)
    batch = random_batch(config, **items)
    update = make_update(config)
    for variable in update.target_network.trainable_variables:
        variable.assign_add(0.3 * tf.random.normal(variable.shape))
    expected = oracle.evaluate(update, batch, config)
    evaluation = update.evaluate(batch)
    real = batch.mask[burn_in:].numpy() > 0
    assert real.sum(axis=0).tolist() == [3, 6, 1, 6]
    np.testing.assert_allclose(evaluation.q_taken[real], expected.q_taken[real], atol=1e-5)
    np.testing.assert_allclose(evaluation.targets[real], expected.targets[real], atol=1e-4)
    priorities, metrics = update(batch)
    np.testing.assert_allclose(priorities, expected.priorities, rtol=1e-4)
    assert float(metrics["loss"]) == pytest.approx(expected.loss, rel=1e-4)
    assert float(metrics["mean_q"]) == pytest.approx(np.nanmean(expected.q_taken), abs=1e-5)
    assert float(metrics["mean_target"]) == pytest.approx(np.nanmean(expected.targets), abs=1e-4)
    errors = np.abs(expected.targets - expected.q_taken)
    assert float(metrics["mean_abs_td"]) == pytest.approx(np.nanmean(errors), rel=1e-4)
    assert float(metrics["mean_priority"]) == pytest.approx(priorities.numpy().mean(), rel=1e-5)


def test_zero_state_ignores_the_stored_one() -> None:
    batch = random_batch(small_config("r2d2"))
    zeros = batch._replace(core_state=tree.map_structure(tf.zeros_like, batch.core_state))
    stored, zero = (
        make_update(small_config("r2d2")),
        make_update(small_config("r2d2", stored_state=False)),
    )
    expected = stored.evaluate(zeros).q_taken
    np.testing.assert_array_equal(zero.evaluate(batch).q_taken, expected)
    assert np.abs(stored.evaluate(batch).q_taken - expected).max() > 1e-3


@pytest.mark.parametrize(
    ("life_loss", "resets", "bootstraps"),
    [("none", False, True), ("roll", False, False), ("reset", True, False)],
)
def test_a_lost_life(life_loss: str, resets: bool, bootstraps: bool) -> None:
    """Seen on row 5: in the trained part, which begins at row 3."""
    config = small_config("r2d2", life_loss=life_loss, n_step=1)
    batch, update = random_batch(config), make_update(config)
    lost = np.zeros(batch.life_lost.shape, bool)
    lost[5] = True
    before = update.evaluate(batch)
    after = update.evaluate(batch._replace(life_lost=tf.constant(lost)))
    np.testing.assert_array_equal(before.q_taken[:2], after.q_taken[:2])
    assert np.array_equal(before.q_taken[2:], after.q_taken[2:]) != resets
    assert np.array_equal(before.targets[1], after.targets[1]) == bootstraps
    if resets:
        part = tree.map_structure(lambda x: x[5:-1], (batch.inputs, batch.reset, batch.valid))
        state = update.network.initial_state(config.batch_size)
        q, _ = update.network.unroll(part[0], state, *part[1:])
        expected = tf.gather(q, batch.action[5:], axis=-1, batch_dims=2)
        np.testing.assert_allclose(after.q_taken[2:], expected, atol=1e-6)


@pytest.mark.parametrize(
    ("life_loss", "changes"),
    [("none", {}), ("roll", {"reward_transform": "clip", "rescale": False})],
)
@eagerly()
def test_an_actors_first_priority_equals_the_learners(
    life_loss: str, changes: dict[str, Any]
) -> None:
    """Target and online network have the actor's parameters."""
    config = small_config("r2d2", life_loss=life_loss, **changes)
    update = make_update(config)
    batch = make_batch(config)
    lost = np.random.default_rng(0).random(batch.life_lost.shape) < 0.2
    batch = batch._replace(life_lost=tf.constant(lost & batch.valid.numpy()))
    q = np.stack([oracle.q_values(update.network, batch, b) for b in range(4)], axis=1)
    q = np.nan_to_num(q)[config.burn_in :]
    action = np.concatenate([batch.action, np.zeros((1, 4), np.int32)])[config.burn_in :]
    values = {
        "q_taken": np.take_along_axis(q, action[..., None], -1)[..., 0].astype(np.float32),
        "q_max": q.max(axis=-1).astype(np.float32),
    }
    initial_priority = make_agent(config).initial_priority
    assert initial_priority is not None
    fields = (batch.reward, batch.continuation, batch.life_lost, batch.mask)
    trained = (x.numpy()[config.burn_in :] for x in fields)
    first = initial_priority(PriorityInput(values, *trained))
    learners, _ = update(batch)
    np.testing.assert_allclose(first, learners, rtol=1e-4)


def test_target_network_is_copied_at_exact_steps() -> None:
    config = small_config("r2d2", target_update_period=3)
    update = make_update(config)
    target = [v.numpy() for v in update.target_network.trainable_variables]
    assert same(target, parameters_of(update))
    for step in range(1, 8):
        update(random_batch(config, seed=step))
        now = [v.numpy() for v in update.target_network.trainable_variables]
        assert same(now, parameters_of(update)) == (step % 3 == 0), step
        assert same(now, target) == (step % 3 != 0), step
        target = now


@pytest.mark.parametrize(("reward_scale", "clips"), [(1.0, False), (1e4, True)])
@eagerly()
def test_the_first_adam_step_by_hand(reward_scale: float, clips: bool) -> None:
    """m̂ is the gradient and √v̂ its size, so that Table 2's ε shows: −lr g / (|g| + ε).

    A gradient longer than 40 is made as long as that first.
    """
    config = small_config(
        "r2d2", learning_rate=0.01, adam_epsilon=1e-3, max_gradient_norm=40.0, rescale=False
    )
    batch, update = random_batch(config, reward_scale=reward_scale), make_update(config)
    before, gradients = parameters_of(update), gradients_of(update, batch)
    norm = np.sqrt(sum((g**2).sum() for g in gradients))
    assert (norm > 40.0) == clips
    given = [g * 40.0 / norm if clips else g for g in gradients]
    _, metrics = update(batch)
    assert float(metrics["gradient_norm"]) == pytest.approx(norm, rel=1e-4)
    sizes = np.concatenate([np.abs(g).ravel() for g in given])
    assert (sizes < 1e-3).any()
    assert (sizes > 1e-2).any()
    for x, g, y, m in zip(before, given, parameters_of(update), update._optimizer.m, strict=True):
        np.testing.assert_allclose(y, x - 0.01 * g / (np.abs(g) + 1e-3), atol=2e-5)
        np.testing.assert_allclose(10.0 * m.numpy(), g, rtol=1e-3, atol=1e-5)  # its first moment


@eagerly()
def test_items_in_which_another_agent_acted_have_no_parameter_lag() -> None:
    config = small_config("r2d2")
    update = make_update(config)
    update.step.assign(100)
    learner_step = tf.constant([UNKNOWN, 90, UNKNOWN, 70], tf.int64)
    _, metrics = update(random_batch(config)._replace(learner_step=learner_step))
    assert float(metrics["parameter_lag"]) == 20.0
