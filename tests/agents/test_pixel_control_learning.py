"""Pixel control learns: on a ring of places, whose fixed point is computed by hand."""

import numpy as np
import tensorflow as tf

from agents.impala.learner import ImpalaUpdate
from agents.networks.network import unroll_trained_core
from agents.pixel_control import DISCOUNT, PixelControl
from replay.structures import Batch
from tests.batches import NUM_ACTIONS, environment_spec, random_batch
from tests.small_agents import make_update, small_config

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
    """The fixed point of n-step Q-learning from random actions, `[PLACES, A, 8, 8]`.

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
