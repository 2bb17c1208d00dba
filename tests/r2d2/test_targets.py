"""An item's targets by config, and the first priority that an actor computes from them."""

from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from r2d2.targets import item_targets, make_initial_priority
from replay.structures import PriorityInput
from tests.r2d2.batches import small_config

L, B = 6, 2
RNG = np.random.default_rng(0)
VALUE = RNG.normal(size=(L + 1, B)).astype(np.float32) * 3
REWARD = RNG.normal(size=(L, B)).astype(np.float32) * 3
CONTINUATION = np.ones((L, B), np.float32)
CONTINUATION[5, 0] = 0
LIFE_LOST = np.zeros((L + 1, B), bool)
LIFE_LOST[[0, 3], 1] = True  # by the actions of rows -1 and 2
MASK = np.ones((L, B), np.float32)
MASK[4:, 1] = 0


def _targets(**changes: Any) -> np.ndarray:
    config = small_config(discount=0.9, n_step=2, length=L, **changes)
    arguments = (VALUE, REWARD, CONTINUATION, LIFE_LOST, MASK)
    return item_targets(config, *(tf.constant(x) for x in arguments)).numpy()


def _two_step(reward: np.ndarray, value: np.ndarray, t: int, b: int, end: int) -> float:
    """r + 0.9 r' + 0.81 v'', with the episode's end and the item's."""
    if t + 1 == end:
        return float(reward[t, b] + 0.9 * CONTINUATION[t, b] * value[end, b])
    rest = reward[t + 1, b] + 0.9 * CONTINUATION[t + 1, b] * value[t + 2, b]
    return float(reward[t, b] + 0.9 * rest)


ENDS = (6, 4)


def _h(x: float) -> float:
    return float(np.sign(x) * (np.sqrt(abs(x) + 1) - 1) + 1e-3 * x)


def _h_inverse(y: float) -> float:
    z = (np.sqrt(1 + 4e-3 * (abs(y) + 1 + 1e-3)) - 1) / 2e-3
    return float(np.sign(y) * (z**2 - 1))


def test_rescaled_targets() -> None:
    unscaled = np.vectorize(_h_inverse)(VALUE)
    for b, end in enumerate(ENDS):
        for t in range(end):
            expected = _h(_two_step(REWARD, unscaled, t, b, end))
            assert _targets()[t, b] == pytest.approx(expected, abs=1e-4)


def test_clipped_ablation_clips_rewards_and_leaves_values_alone() -> None:
    clipped = np.clip(REWARD, -1, 1)
    assert (REWARD > 1).any()
    assert (REWARD < -1).any()
    assert (np.abs(REWARD) < 1).any()
    targets = _targets(reward_transform="clip", rescale=False)
    for b, end in enumerate(ENDS):
        for t in range(end):
            assert targets[t, b] == pytest.approx(_two_step(clipped, VALUE, t, b, end), abs=1e-5)


@pytest.mark.parametrize("life_loss", ["roll", "reset"])
def test_nothing_is_bootstrapped_across_a_lost_life(life_loss: str) -> None:
    plain = _targets(rescale=False)
    targets = _targets(rescale=False, life_loss=life_loss)
    np.testing.assert_array_equal(targets[:, 0], plain[:, 0])
    assert targets[0, 1] == plain[0, 1]  # rows 0 and 1 lie in the life that row 2 ends
    assert targets[1, 1] == pytest.approx(REWARD[1, 1] + 0.9 * REWARD[2, 1])
    assert targets[2, 1] == pytest.approx(REWARD[2, 1])
    assert targets[3, 1] == plain[3, 1]
    assert (targets[1:3, 1] != plain[1:3, 1]).all()


def _first_priority(eta: float, q_taken: np.ndarray, **changes: Any) -> np.ndarray:
    priority = make_initial_priority(small_config(eta=eta, n_step=2, length=L, **changes))
    values = {"q_taken": q_taken.astype(np.float32), "q_max": VALUE}
    return priority(PriorityInput(values, REWARD, CONTINUATION, LIFE_LOST, MASK))


def test_first_priority_mixes_largest_and_mean_error() -> None:
    q_taken = RNG.normal(size=(L + 1, B))
    errors = np.abs(_targets() - q_taken[:-1])
    for b, end in enumerate(ENDS):
        real = errors[:end, b]
        expected = 0.7 * real.max() + 0.3 * real.mean()
        assert _first_priority(0.7, q_taken)[b] == pytest.approx(expected, rel=1e-4)
