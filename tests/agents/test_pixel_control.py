"""Pixel control: cells, pseudo-rewards, targets and loss against loops; then inside the update."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from agents.impala.agent import Config
from agents.impala.learner import ImpalaUpdate
from agents.networks.network import unroll_trained_core
from agents.networks.parts import image_of
from agents.pixel_control import (
    Grid,
    PixelControl,
    PixelControlHead,
    n_step_targets,
    pseudo_rewards,
    q_learning_loss,
)
from replay.structures import Batch
from tests.batches import environment_spec, random_batch
from tests.eager import eagerly
from tests.observations import COLOURED, spec_with_words, with_words
from tests.small_agents import make_update, small_config, with_ends

L, B, A = 6, 3, 4
H, W = 2, 3  # cells


@pytest.mark.parametrize(
    ("image", "grid", "smallest"),
    [
        ((72, 96, 3), (18, 24), (6, 9)),  # the paper's
        ((84, 84), (20, 20), (7, 7)),
        ((210, 160, 3), (52, 40), (23, 17)),
        ((32, 39), (8, 8), (1, 1)),
    ],
)
def test_the_grid_is_the_largest_that_the_head_can_give(
    image: tuple[int, ...], grid: tuple[int, int], smallest: tuple[int, int]
) -> None:
    assert Grid.of(image) == grid
    head = PixelControlHead(Grid.of(image), A)
    assert head(tf.zeros([2, 5])).shape == (2, *grid, A)
    (linear,) = [v for v in head.variables if v.shape.rank == 2]
    assert linear.shape == (5, smallest[0] * smallest[1] * 32)


@pytest.mark.parametrize("shape", [(31, 84), (84, 31, 3), (84,), (4, 84, 84, 3)])
def test_what_is_no_image_or_too_small_is_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=r"at least 32 x 32 pixels, got observations of shape \("):
        Grid.of(shape)


@pytest.mark.parametrize("image", [(12, 20, 1), (13, 21, 3), (15, 22, 2)])
@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
def test_pseudo_rewards_equal_a_loop_over_cells(image: tuple[int, ...], dtype: type) -> None:
    rng = np.random.default_rng(0)
    grid = Grid(2, 4)  # 8 x 16 pixels
    shape = (L + 1, B, *image)
    pixels = rng.integers(256, size=shape)
    intensity = pixels / 255.0
    frames = tf.constant(pixels if dtype == np.uint8 else intensity, dtype)
    top, left = (image[0] - 8) // 2, (image[1] - 16) // 2
    expected = np.zeros((L, B, *grid))
    for t, b, i, j in np.ndindex(expected.shape):
        rows = slice(top + 4 * i, top + 4 * i + 4)
        columns = slice(left + 4 * j, left + 4 * j + 4)
        cell = intensity[:, b, rows, columns]
        expected[t, b, i, j] = np.abs(cell[t + 1] - cell[t]).mean()
    np.testing.assert_allclose(pseudo_rewards(frames, grid), expected, atol=1e-6)


def _unrolls() -> tuple[np.ndarray, ...]:
    """Q, actions, rewards, discounts and mask, with terminations and truncations."""
    rng = np.random.default_rng(0)
    mask = np.ones((L, B))
    discount = np.full((L, B), 0.9)
    mask[3, 0] = 0
    discount[2, 0] = 0  # a termination inside
    mask[2, 1] = 0  # a truncation inside
    discount[5, 2] = 0  # a termination on the last row
    discount[1, 2] = 0  # a lost life: no row in between
    return (
        rng.normal(size=(L + 1, B, H, W, A)),
        rng.integers(A, size=(L, B)),
        rng.random((L, B, H, W)),
        discount,
        mask,
    )


def _target(
    value: np.ndarray, reward: np.ndarray, discount: np.ndarray, mask: np.ndarray, t: int, b: int
) -> np.ndarray:
    """The target of row t, summed forwards to the end of the episode or of the rollout."""
    total, weight = np.zeros((H, W)), 1.0
    for s in range(t, L):
        if mask[s, b] == 0:
            return total + weight * value[s, b]
        total = total + weight * reward[s, b]
        weight *= discount[s, b]
    return total + weight * value[L, b]


@pytest.mark.parametrize("wrap", [lambda f: f, tf.function], ids=["eager", "traced"])
def test_targets_loss_and_gradient_equal_a_loop(wrap: Callable) -> None:
    """Only the values of actions taken on real rows have a gradient."""
    q, action, reward, discount, mask = _unrolls()
    value = q.max(axis=-1)
    targets = wrap(n_step_targets)(*map(tf.constant, (value, reward, discount, mask)))
    expected_loss, expected_gradient = 0.0, np.zeros_like(q)
    for t, b in zip(*np.nonzero(mask), strict=True):
        expected = _target(value, reward, discount, mask, t, b)
        np.testing.assert_allclose(targets[t, b], expected, rtol=1e-10)
        error = q[t, b, ..., action[t, b]] - expected
        expected_loss += 0.5 * (error**2).sum()
        expected_gradient[t, b, ..., action[t, b]] = error
    x, *others = map(tf.constant, _unrolls())
    with tf.GradientTape() as tape:
        tape.watch(x)
        loss = wrap(q_learning_loss)(x, *others)
    assert float(loss) == pytest.approx(expected_loss)
    np.testing.assert_allclose(tape.gradient(loss, x), expected_gradient)


@pytest.mark.parametrize(
    ("image", "num_frames"), [((32, 32), 4), ((32, 32, 3), 1), ((32, 32, 3), 2)]
)
def test_only_the_newest_frame_of_a_stack_is_rewarded(
    image: tuple[int, ...], num_frames: int
) -> None:
    tf.random.set_seed(0)
    control = PixelControl(image, A, core_size=5)
    rng = np.random.default_rng(0)
    channels = image[2] if len(image) == 3 else 1
    observation = rng.integers(256, size=(L + 1, B, *image[:2], channels * num_frames)).astype(
        np.uint8
    )
    core_output = tf.constant(rng.normal(size=(L + 1, B, 5)), tf.float32)
    action = tf.constant(rng.integers(A, size=(L, B)))
    ones = tf.ones([L, B])

    def loss(observation: np.ndarray) -> float:
        return float(control.loss(core_output, tf.constant(observation), action, ones, ones))

    older, newest = observation.copy(), observation.copy()
    older[..., :-channels] = 0
    newest[..., -channels:] = 0
    assert loss(older) == loss(observation)
    assert loss(newest) != loss(observation)
    reward = pseudo_rewards(tf.constant(observation[..., -channels:]), Grid(8, 8))
    q = tf.stack([control.head(row) for row in core_output])
    expected = q_learning_loss(q, action, reward, 0.9 * ones, ones)
    assert loss(observation) == pytest.approx(float(expected), rel=1e-5)


IMAGE = (32, 36)
COST = 0.5


def _config(**changes: Any) -> Any:
    """A Config with unrolls of four trained rows after a burn-in of two."""
    values = dict(length=4, burn_in=2, batch_size=3, pixel_control_cost=COST)
    return small_config("impala", **values | changes)


def _update(config: Config) -> ImpalaUpdate:
    update: ImpalaUpdate = make_update(config, spec=environment_spec(IMAGE))
    return update


def _control(update: ImpalaUpdate) -> PixelControl:
    (control,) = [m for m in update.submodules if isinstance(m, PixelControl)]
    return control


def _batch(config: Config) -> Batch:
    """Images of floats, for gradients to reach; a termination and a truncation inside."""
    end = config.burn_in + 2
    batch = with_ends(random_batch(config), {(end, 0): True, (end, 1): False})
    shape = (*batch.reset.shape, *IMAGE, 1)
    images = np.random.default_rng(0).random(size=shape)
    inputs = batch.inputs._replace(observation=tf.constant(images, tf.float32))
    return batch._replace(inputs=inputs)


def _auxiliary(update: ImpalaUpdate, batch: Batch) -> tf.Tensor:
    return update.evaluate(batch).metrics["pixel_control_loss"]


def _loss_of_rows(update: ImpalaUpdate, batch: Batch, config: Config) -> float:
    """The loss of the trained rows, with the ends of episodes that `batch` has."""
    core_output = unroll_trained_core(
        update.learned_network, batch, batch.core_state, batch.reset, config.burn_in
    )
    images = image_of(batch.inputs.observation)
    fields = (images, batch.action, batch.continuation, batch.mask)
    observation, action, continuation, mask = (x[config.burn_in :] for x in fields)
    control = _control(update)
    return float(control.loss(core_output, observation, action, continuation, mask))


def test_the_loss_is_added_with_its_cost() -> None:
    config = _config()
    update, batch = _update(config), _batch(config)
    evaluation = update.evaluate(batch)
    metrics = evaluation.metrics
    auxiliary = _loss_of_rows(update, batch, config)
    assert auxiliary > 0
    assert float(metrics["pixel_control_loss"]) == pytest.approx(auxiliary, rel=1e-5)
    others = metrics["policy_gradient_loss"] + 0.5 * metrics["baseline_loss"]
    others -= 0.01 * metrics["entropy"] * tf.reduce_sum(batch.trained(config.burn_in).mask)
    assert float(evaluation.loss) == pytest.approx(float(others) + COST * auxiliary, rel=1e-5)


def test_a_lost_life_ends_the_episode_as_in_the_other_losses() -> None:
    config = _config()
    update, batch = _update(config), _batch(config)
    lost = np.zeros(batch.life_lost.shape, bool)
    lost[4, 2] = True  # by the action of row 3
    ended = batch._replace(
        reset=batch.reset | lost, continuation=tf.where(lost[1:], 0.0, batch.continuation)
    )
    expected = _loss_of_rows(update, ended, config)
    actual = _auxiliary(update, batch._replace(life_lost=tf.constant(lost)))
    assert float(actual) == pytest.approx(expected, rel=1e-5)
    assert expected != pytest.approx(_loss_of_rows(update, batch, config), rel=1e-4)


def test_only_trained_rows_have_a_gradient() -> None:
    config = _config(lstm_size=6)
    update, batch = _update(config), _batch(config)
    observation = batch.inputs.observation
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(observation)
        loss = _auxiliary(update, batch)
    gradient = np.abs(tape.gradient(loss, observation).numpy()).sum(axis=(2, 3, 4))
    assert (gradient[:2] == 0).all()  # burn-in
    assert (gradient[-1] == 0).all()  # only bootstraps
    assert (gradient[4, :2] == 0).all()  # an episode's last observation
    assert (gradient[2:4] > 0).all()
    torso = [v for v in update.learned_network.trainable_variables if "torso" in v.name]
    assert all(np.any(g) for g in tape.gradient(loss, torso))


@eagerly()
def test_actors_never_get_the_head_and_the_learner_trains_it() -> None:
    config = _config()
    update, plain = _update(config), _update(_config(pixel_control_cost=0.0))
    assert [v.name for v in update.network.variables] == [v.name for v in plain.network.variables]
    assert not [m for m in plain.submodules if isinstance(m, PixelControl)]
    control = _control(update)
    held = {v.ref() for v in update.variables}  # what a checkpoint holds
    assert {v.ref() for v in control.variables} <= held
    assert len(update._optimizer.ms) == len(plain._optimizer.ms) + len(control.variables)
    before = [v.numpy() for v in control.trainable_variables]
    _, metrics = update(_batch(config))
    for x, y in zip(before, control.trainable_variables, strict=True):
        assert (x != y.numpy()).any()
    assert float(metrics["pixel_control_loss"]) > 0
    assert "pixel_control_loss" not in plain(_batch(config))[1]


@eagerly()
def test_where_there_are_words_it_controls_the_image() -> None:
    config = _config()
    update = make_update(config, spec=spec_with_words())
    assert _control(update).grid == Grid.of(COLOURED)
    batch = with_words(random_batch(config))
    expected = _loss_of_rows(update, batch, config)
    assert expected > 0
    assert float(update(batch)[1]["pixel_control_loss"]) == pytest.approx(expected, rel=1e-4)
