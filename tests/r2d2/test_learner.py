"""R2D2's update as a whole: parameters, optimizer, target network, checkpoints, reproducibility."""

from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from replay.structures import UNKNOWN
from tests.batches import random_batch
from tests.eager import eagerly
from tests.r2d2.batches import ITEMS, small_config
from tests.r2d2.updates import after_one_update, make_update
from tests.updates import parameters_of, same


def test_target_network_is_copied_at_exact_steps() -> None:
    config = small_config(target_update_period=3)
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
def test_gradients_are_clipped_to_a_global_norm_of_40(reward_scale: float, clips: bool) -> None:
    config = small_config(max_gradient_norm=40.0, rescale=False)
    batch, update = random_batch(config, reward_scale=reward_scale), make_update(config)
    parameters = update.network.trainable_variables
    with tf.GradientTape() as tape:
        loss = update.evaluate(batch).loss
    gradients = [g.numpy() for g in tape.gradient(loss, parameters)]
    norm = np.sqrt(sum((g**2).sum() for g in gradients))
    assert (norm > 40.0) == clips
    _, metrics = update(batch)
    assert float(metrics["gradient_norm"]) == pytest.approx(norm, rel=1e-4)
    # Adam's first moment after one step is a tenth of the gradient it was given.
    given = [10.0 * m.numpy() for m in update._optimizer.m]
    scale = 40.0 / norm if clips else 1.0
    for x, g in zip(given, gradients, strict=True):
        np.testing.assert_allclose(x, scale * g, rtol=1e-3, atol=1e-5)


@eagerly()
def test_the_first_adam_step_by_hand() -> None:
    """m̂ is the gradient and √v̂ its size, so that Table 2's ε shows: −lr g / (|g| + ε)."""
    config = small_config(learning_rate=0.01, adam_epsilon=1e-3)
    batch, update = random_batch(config), make_update(config)
    before = parameters_of(update)
    with tf.GradientTape() as tape:
        loss = update.evaluate(batch).loss
    gradients = tape.gradient(loss, update.network.trainable_variables)
    update(batch)
    straddles = np.concatenate([np.abs(g).ravel() for g in gradients])
    assert (straddles < 1e-3).any()
    assert (straddles > 1e-2).any()
    for x, g, y in zip(before, gradients, parameters_of(update), strict=True):
        expected = x - 0.01 * g.numpy() / (np.abs(g) + 1e-3)
        np.testing.assert_allclose(y, expected, atol=2e-5)


@eagerly()
def test_items_in_which_another_agent_acted_have_no_parameter_lag() -> None:
    config = small_config()
    update = make_update(config)
    update.step.assign(100)
    learner_step = tf.constant([UNKNOWN, 90, UNKNOWN, 70], tf.int64)
    _, metrics = update(random_batch(config)._replace(learner_step=learner_step))
    assert float(metrics["parameter_lag"]) == 20.0


def test_an_eager_update_equals_a_traced_one() -> None:
    config = small_config()
    batch = random_batch(config, **ITEMS)
    parameters, priorities, _ = after_one_update(config, batch)
    with eagerly():
        eager_parameters, eager_priorities, _ = after_one_update(config, batch)
    np.testing.assert_allclose(priorities, eager_priorities, rtol=1e-5)
    for x, y in zip(parameters, eager_parameters, strict=True):
        np.testing.assert_allclose(x, y, atol=1e-5)


def test_a_checkpoint_reproduces_the_next_updates_bit_for_bit(tmp_path: Path) -> None:
    config = small_config(target_update_period=3)
    update = make_update(config)
    for step in range(2):
        update(random_batch(config, seed=step))
    path = tf.train.Checkpoint(update=update).write(str(tmp_path / "update"))
    restored = make_update(config, seed=5)
    tf.train.Checkpoint(update=restored).read(path).assert_consumed()
    assert int(restored.step) == 2
    for step in range(2, 5):  # which copies into the target network on the way
        batch = random_batch(config, seed=step)
        priorities, _ = update(batch)
        again, _ = restored(batch)
        np.testing.assert_array_equal(priorities, again)
        assert same([v.numpy() for v in update.variables], [v.numpy() for v in restored.variables])
