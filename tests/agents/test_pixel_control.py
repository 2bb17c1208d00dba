"""Pixel control: cells, pseudo-rewards, targets and loss against loops; then it learns."""

from collections.abc import Callable

import numpy as np
import pytest
import tensorflow as tf

from agents.impala.learner import ImpalaUpdate
from agents.networks.network import unroll_trained_core
from agents.pixel_control import (
    DISCOUNT,
    Grid,
    PixelControl,
    PixelControlHead,
    n_step_targets,
    pseudo_rewards,
    q_learning_loss,
)
from replay.structures import Batch
from tests.batches import NUM_ACTIONS, environment_spec, random_batch
from tests.small_agents import make_update, small_config

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


@pytest.mark.parametrize("shape", [(31, 84), (84, 31, 3), (10, 5), (84,), (4, 84, 84, 3)])
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
    """Forwards from row t, to the end of the episode or of the rollout."""
    total, weight = np.zeros((H, W)), 1.0
    for s in range(t, L):
        if mask[s, b] == 0:
            return total + weight * value[s, b]
        total = total + weight * reward[s, b]
        weight *= discount[s, b]
    return total + weight * value[L, b]


@pytest.mark.parametrize("wrap", [lambda f: f, tf.function], ids=["eager", "traced"])
def test_targets_and_loss_equal_a_loop(wrap: Callable) -> None:
    q, action, reward, discount, mask = _unrolls()
    value = q.max(axis=-1)
    targets = wrap(n_step_targets)(*map(tf.constant, (value, reward, discount, mask)))
    loss = 0.0
    for t, b in zip(*np.nonzero(mask), strict=True):
        expected = _target(value, reward, discount, mask, t, b)
        np.testing.assert_allclose(targets[t, b], expected, rtol=1e-10)
        loss += 0.5 * ((expected - q[t, b, ..., action[t, b]]) ** 2).sum()
    assert float(wrap(q_learning_loss)(*map(tf.constant, _unrolls()))) == pytest.approx(loss)


def test_only_the_values_of_actions_taken_on_real_rows_have_a_gradient() -> None:
    q, action, reward, discount, mask = (tf.constant(x) for x in _unrolls())
    with tf.GradientTape() as tape:
        tape.watch(q)
        loss = q_learning_loss(q, action, reward, discount, mask)
    gradient = tape.gradient(loss, q).numpy()
    taken = np.zeros((L + 1, B, A), bool)
    for t, b in zip(*np.nonzero(mask.numpy()), strict=True):
        taken[t, b, action[t, b]] = True
    assert ((gradient != 0) == taken[:, :, None, None, :]).all()
    for t, b in zip(*np.nonzero(mask.numpy()), strict=True):
        target = _target(
            q.numpy().max(axis=-1), reward.numpy(), discount.numpy(), mask.numpy(), t, b
        )
        expected = q[t, b, ..., int(action[t, b])] - target
        np.testing.assert_allclose(gradient[t, b, ..., int(action[t, b])], expected)


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


PLACES = 4  # on the ring; each is a column of cells, 8 x 2 of them
SIDE = 32
LENGTH, SIZE = 4, 16
MOVES = np.array([0, 1, -1])  # by action


def _images() -> np.ndarray:
    """The picture of each place, `[PLACES, 32, 32]`."""
    columns = np.arange(SIDE) // (SIDE // PLACES)
    return np.broadcast_to(
        255 * (columns == np.arange(PLACES)[:, None])[:, None], (PLACES, SIDE, SIDE)
    ).astype(np.uint8)


def _batch(rng: np.random.Generator, template: Batch) -> Batch:
    """Unrolls of random actions from random places."""
    action = rng.integers(NUM_ACTIONS, size=(LENGTH, SIZE))
    start = rng.integers(PLACES, size=SIZE)
    place = (start + np.cumsum(np.vstack([np.zeros_like(start), MOVES[action]]), axis=0)) % PLACES
    inputs = template.inputs._replace(observation=tf.constant(_images()[place][..., None]))
    return template._replace(
        inputs=inputs,
        action=tf.constant(action, tf.int32),
        log_probability=tf.fill([LENGTH, SIZE], -np.log(np.float32(NUM_ACTIONS))),
        reward=tf.zeros([LENGTH, SIZE]),
    )


def _fixed_point() -> np.ndarray:
    """The limit of n-step Q-learning from random actions, `[PLACES, A, 8, 8]`.

    On the row k before the end of an unroll the target of action a at place s is

        G_k(s, a) = r(s, a) + γ mean_a' G_{k−1}(s', a'),   G_1 = r(s, a) + γ max_a' Q(s', a')

    and one value serves all rows alike: Q is the mean of G_k over k.
    """
    places = np.arange(PLACES)
    following = (places[:, None] + MOVES) % PLACES  # [S, A]
    cells = _images()[:, ::4, ::4] / 255.0  # [S, 8, 8]
    reward = np.abs(cells[following] - cells[:, None])  # [S, A, 8, 8]
    q = np.zeros_like(reward)
    for _ in range(200):
        value = q.max(axis=1)
        targets = []
        for _ in range(LENGTH):
            targets.append(reward + DISCOUNT * value[following])
            value = targets[-1].mean(axis=1)
        q = np.mean(targets, axis=0)
    return q


def _learned(update: ImpalaUpdate, template: Batch) -> np.ndarray:
    """Q at every place, `[PLACES, A, 8, 8]`."""
    (control,) = [m for m in update.submodules if isinstance(m, PixelControl)]
    images = np.zeros((LENGTH + 1, SIZE, SIDE, SIDE, 1), np.uint8)
    images[0, :PLACES, ..., 0] = _images()
    batch = template._replace(inputs=template.inputs._replace(observation=tf.constant(images)))
    core_output = unroll_trained_core(update.learned_network, batch, (), batch.reset, 0)
    return np.moveaxis(control.head(core_output[0, :PLACES]).numpy(), -1, 1)


def test_pixel_control_learns_which_cells_its_actions_change() -> None:
    config = small_config(
        "impala",
        length=LENGTH,
        batch_size=SIZE,
        queue_size=SIZE + 2,
        lstm_size=0,
        hidden_sizes=(32,),
        baseline_cost=0.0,
        entropy_cost=0.0,
        pixel_control_cost=1.0,
        learning_rate=3e-3,
        annealing_frames=600 * SIZE * LENGTH,
    )
    update = make_update(config, spec=environment_spec((SIDE, SIDE), np.uint8))
    rng, template = np.random.default_rng(0), random_batch(config)
    expected = _fixed_point()

    def unexplained() -> float:
        error = _learned(update, template) - expected
        return float((error**2).sum() / ((expected - expected.mean()) ** 2).sum())

    before = unexplained()
    for _ in range(600):
        update(_batch(rng, template))
    after = unexplained()
    assert before > 1.0
    assert after < 0.1
    # Greedy actions lose next to nothing; cells tie where no action changes them.
    greedy = _learned(update, template).argmax(axis=1)
    loss = expected.max(axis=1) - np.take_along_axis(expected, greedy[:, None], axis=1)[:, 0]
    assert loss.mean() < 0.01
