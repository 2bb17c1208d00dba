"""R2D2's update: a batch against an oracle, and each mistake that others have made."""

from typing import Any

import numpy as np
import pytest
import tensorflow as tf
import tree

from r2d2.agent import make
from replay.structures import UNKNOWN, Batch, PriorityInput
from tests.batches import NUM_ACTIONS, random_batch
from tests.eager import eagerly
from tests.r2d2 import oracle
from tests.r2d2.batches import ITEMS, after_one_update, make_update, small_config
from tests.updates import parameters_of, same


def _with_observation(batch: Batch, observation: np.ndarray | tf.Tensor) -> Batch:
    inputs = batch.inputs._replace(observation=tf.convert_to_tensor(observation))
    return batch._replace(inputs=inputs)


@pytest.mark.parametrize("burn_in", [0, 3])
@pytest.mark.parametrize("lstm_size", [0, 6])
@eagerly()
def test_update_equals_the_oracle(burn_in: int, lstm_size: int) -> None:
    """With a target network of its own, so that it must be burned in with its own weights."""
    config = small_config(burn_in=burn_in, lstm_size=lstm_size, rescale=False)
    num_real = [burn_in + 3, 6, burn_in + 1, burn_in + 6]
    items = dict(ITEMS, padding=[0, burn_in, 0, 0], num_real=num_real)
    batch = random_batch(config, **items)
    update = make_update(config, perturbed=True)
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


@pytest.mark.parametrize("episode_start", [None, 0, 2])
def test_the_learner_sees_the_q_values_that_the_actor_logged(episode_start: int | None) -> None:
    """Same parameters, the state from before the item's first step: equal at every step."""
    config = small_config(batch_size=1)
    update = make_update(config)
    padding = episode_start or 0
    batch = random_batch(config, padding=[padding])
    reset = np.zeros(batch.reset.shape, bool)
    if episode_start is not None:
        reset[episode_start] = True
    policy = make(config).make_policy(update.network, np.array([0]), 1, 0)
    state = tree.map_structure(lambda x: x, batch.core_state)
    actions, logged = np.zeros_like(batch.action), []
    for t in range(padding, len(reset) - 1):
        if reset[t]:
            state = update.network.initial_state(1)
        output = policy(tree.map_structure(lambda x, t=t: x[t], batch.inputs), state)
        state = output.core_state
        actions[t] = output.action
        logged.append(output.values["q_taken"].numpy())
    batch = batch._replace(reset=tf.constant(reset), action=tf.constant(actions))
    q_taken = update.evaluate(batch).q_taken
    np.testing.assert_allclose(q_taken, logged[config.burn_in - padding :], atol=1e-6)
    later = batch._replace(core_state=tree.map_structure(lambda x: x + 1.0, batch.core_state))
    difference = np.abs(update.evaluate(later).q_taken - q_taken).max()
    assert (difference > 1e-4) == (episode_start is None)


def test_no_gradient_reaches_the_burn_in_the_state_or_the_targets() -> None:
    config = small_config()
    batch, update = random_batch(config), make_update(config, perturbed=True)
    observation, state = batch.inputs.observation, batch.core_state
    with tf.GradientTape() as tape:
        tape.watch([observation, *state])
        loss = update.evaluate(_with_observation(batch, observation)).loss
    wanted = [observation, *state, *update.target_network.trainable_variables]
    by_row, *others = tape.gradient(loss, wanted)
    by_row = np.abs(by_row.numpy()).sum(axis=(1, 2))
    assert (by_row[: config.burn_in] == 0).all()
    assert (by_row[config.burn_in : -1] > 0).all()
    assert by_row[-1] == 0  # the last row is only bootstrapped from
    for gradient in others:
        assert gradient is None or not np.any(tf.convert_to_tensor(gradient))


@eagerly()
def test_the_content_of_padding_changes_nothing() -> None:
    config = small_config()
    batch = random_batch(config, **ITEMS)
    parameters, priorities, metrics = after_one_update(config, batch)

    def filled(x: tf.Tensor, real: tf.Tensor, value: float) -> tf.Tensor:
        shape = real.shape + (1,) * (x.shape.rank - 2)
        return tf.where(tf.reshape(real, shape), x, tf.cast(value, x.dtype))

    step = batch.mask > 0
    dirty = batch._replace(
        inputs=tree.map_structure(lambda x: filled(x, batch.valid, 2.0), batch.inputs),
        action=filled(batch.action, step, NUM_ACTIONS - 1),
        reward=filled(batch.reward, step, np.nan),
        continuation=filled(batch.continuation, step, np.nan),
        log_probability=filled(batch.log_probability, step, np.nan),
    )
    assert not np.array_equal(dirty.inputs.observation, batch.inputs.observation)
    other_parameters, other_priorities, other_metrics = after_one_update(config, dirty)
    assert same(parameters, other_parameters)
    np.testing.assert_array_equal(priorities, other_priorities)
    assert {k: float(v) for k, v in metrics.items()} == {
        k: float(v) for k, v in other_metrics.items()
    }


def test_zero_state_ignores_the_stored_one() -> None:
    batch = random_batch(small_config())
    zeros = batch._replace(core_state=tree.map_structure(tf.zeros_like, batch.core_state))
    stored, zero = make_update(small_config()), make_update(small_config(stored_state=False))
    expected = stored.evaluate(zeros).q_taken
    np.testing.assert_array_equal(zero.evaluate(batch).q_taken, expected)
    assert np.abs(stored.evaluate(batch).q_taken - expected).max() > 1e-3


@pytest.mark.parametrize(
    ("life_loss", "resets", "bootstraps"),
    [("none", False, True), ("roll", False, False), ("reset", True, False)],
)
def test_a_lost_life(life_loss: str, resets: bool, bootstraps: bool) -> None:
    """Seen on row 5: in the trained part, which begins at row 3."""
    config = small_config(life_loss=life_loss, n_step=1)
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


@pytest.mark.parametrize("life_loss", ["none", "roll"])
@pytest.mark.parametrize("changes", [{}, {"reward_transform": "clip", "rescale": False}])
@eagerly()
def test_an_actors_first_priority_equals_the_learners(
    life_loss: str, changes: dict[str, Any]
) -> None:
    """With target = online and the same parameters."""
    config = small_config(life_loss=life_loss, **changes)
    update = make_update(config)
    batch = random_batch(config, **ITEMS)
    lost = np.random.default_rng(0).random(batch.life_lost.shape) < 0.2
    batch = batch._replace(life_lost=tf.constant(lost & batch.valid.numpy()))
    q = np.stack([oracle.q_values(update.network, batch, b) for b in range(4)], axis=1)
    q = np.nan_to_num(q)[config.burn_in :]
    action = np.concatenate([batch.action, np.zeros((1, 4), np.int32)])[config.burn_in :]
    values = {
        "q_taken": np.take_along_axis(q, action[..., None], -1)[..., 0].astype(np.float32),
        "q_max": q.max(axis=-1).astype(np.float32),
    }
    initial_priority = make(config).initial_priority
    assert initial_priority is not None
    fields = (batch.reward, batch.continuation, batch.life_lost, batch.mask)
    trained = (x.numpy()[config.burn_in :] for x in fields)
    first = initial_priority(PriorityInput(values, *trained))
    learners, _ = update(batch)
    np.testing.assert_allclose(first, learners, rtol=1e-4)


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
