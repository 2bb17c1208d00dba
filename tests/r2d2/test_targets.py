"""Targets and first priorities against naive loops, on both sides of every boundary."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from agents.prioritized import make_initial_priority, n_step_returns
from r2d2.targets import double_q_values, h, h_inverse, item_targets
from replay.structures import PriorityInput
from tests.r2d2.oracle import n_step_return
from tests.small_agents import small_config

EPSILON = 1e-3
SIZES = np.concatenate([[0.0], np.logspace(-8, 6, 200)])
VALUES = np.concatenate([-SIZES[::-1], SIZES])


def _h(x: np.ndarray, epsilon: float = EPSILON) -> np.ndarray:
    """The paper's h, in float64."""
    return np.sign(x) * (np.sqrt(np.abs(x) + 1) - 1) + epsilon * x


def _h_inverse(y: float, epsilon: float) -> float:
    """The inverse of h by bisection, in float64."""
    low, high = 0.0, 1e9
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if _h(np.array(middle), epsilon) < abs(y) else (low, middle)
    return float(np.sign(y) * low)


def test_h_is_the_papers() -> None:
    expected = _h(VALUES.astype(np.float32).astype(np.float64))
    np.testing.assert_allclose(h(tf.constant(VALUES, tf.float32), EPSILON), expected, rtol=1e-6)


@pytest.mark.parametrize("epsilon", [EPSILON, 0.5])  # beside 1, the paper's hides what ε² does
def test_h_inverse_is_within_1e_5_of_float64(epsilon: float) -> None:
    values = _h(VALUES, epsilon).astype(np.float32)
    expected = np.array([_h_inverse(float(y), epsilon) for y in values])
    actual = h_inverse(tf.constant(values), epsilon).numpy()
    near = np.abs(expected) < 10
    assert near.sum() > 100
    assert (~near).sum() > 100
    assert np.abs(actual - expected)[near].max() < 1e-5
    assert (np.abs(actual - expected)[~near] / np.abs(expected)[~near]).max() < 1e-5
    tiny = (np.abs(expected) < 1e-3) & (expected != 0)
    assert (np.abs(actual - expected)[tiny] / np.abs(expected)[tiny]).max() < 1e-5


def test_double_q_takes_the_targets_value_of_the_online_choice() -> None:
    rng = np.random.default_rng(0)
    online, target = rng.normal(size=(2, 4, 3, 5)).astype(np.float32)
    actual = double_q_values(tf.constant(online), tf.constant(target)).numpy()
    differs = 0
    for t in range(4):
        for b in range(3):
            choice = int(np.argmax(online[t, b]))
            assert actual[t, b] == target[t, b, choice]
            differs += choice != int(np.argmax(target[t, b]))
    assert differs > 3  # or taking the target network's own maximum would pass


L = 7
CASES = {
    "whole": [1] * L,
    "one step": [1] + [0] * (L - 1),
    "truncated tail": [1] * 4 + [0] * (L - 4),
    "nothing": [0] * L,
    "two episodes": [1, 1, 1, 0, 1, 1, 1],  # row 3 holds the first one's last observation
}


@pytest.mark.parametrize(
    ("n", "wrap"), [*((n, lambda f: f) for n in (1, 2, 3, 5, L, L + 4)), (3, tf.function)]
)
def test_n_step_returns_equal_the_naive_ones(n: int, wrap: Callable) -> None:
    """Random rewards and discounts, a terminal at every row, every shape of an item's end."""
    rng = np.random.default_rng(n)
    columns = []
    for case in CASES.values():
        for terminal in [None, *range(L)]:
            limits = rng.uniform(0.5, 1.0, size=L)
            if terminal is not None:
                limits[terminal] = 0.0
            columns.append((rng.normal(size=L + 1), rng.normal(size=L), limits, np.array(case)))
    value, reward, discount, mask = (
        np.stack(x, axis=1).astype(np.float32) for x in zip(*columns, strict=True)
    )
    arguments = (tf.constant(x) for x in (value, reward, discount, mask))
    actual = wrap(n_step_returns)(*arguments, n).numpy()
    assert actual.shape == mask.shape
    compared = 0
    for b in range(mask.shape[1]):
        for t in np.flatnonzero(mask[:, b]):
            expected = n_step_return(t, value[:, b], reward[:, b], discount[:, b], mask[:, b], n)
            assert actual[t, b] == pytest.approx(expected, abs=1e-5), (b, t)
            compared += 1
    assert compared == 8 * sum(sum(case) for case in CASES.values())


ROWS, B = 6, 2
RNG = np.random.default_rng(0)
VALUE = RNG.normal(size=(ROWS + 1, B)).astype(np.float32) * 3
REWARD = RNG.normal(size=(ROWS, B)).astype(np.float32) * 3
CONTINUATION = np.ones((ROWS, B), np.float32)
CONTINUATION[5, 0] = 0
LIFE_LOST = np.zeros((ROWS + 1, B), bool)
LIFE_LOST[[0, 3], 1] = True  # by the actions of rows -1 and 2
MASK = np.ones((ROWS, B), np.float32)
MASK[4:, 1] = 0


def _targets(**changes: Any) -> np.ndarray:
    config = small_config("r2d2", discount=0.9, n_step=2, length=ROWS, **changes)
    arguments = (VALUE, REWARD, CONTINUATION, LIFE_LOST, MASK)
    return item_targets(config, *(tf.constant(x) for x in arguments)).numpy()


ENDS = (6, 4)
CLIP = dict(reward_transform="clip", rescale=False)
LIFE_ENDS = CONTINUATION * ~LIFE_LOST[1:]


@pytest.mark.parametrize(
    ("changes", "back", "transform", "rescale", "continuation"),
    [
        ({}, lambda y: _h_inverse(y, EPSILON), lambda r: r, _h, CONTINUATION),
        (CLIP, float, lambda r: np.clip(r, -1, 1), float, CONTINUATION),
        (dict(rescale=False, life_loss="roll"), float, lambda r: r, float, LIFE_ENDS),
        (dict(rescale=False, life_loss="reset"), float, lambda r: r, float, LIFE_ENDS),
    ],
    ids=["rescaled", "clipped", "roll", "reset"],
)
def test_targets_of_items(
    changes: dict[str, Any],
    back: Callable,
    transform: Callable,
    rescale: Callable,
    continuation: np.ndarray,
) -> None:
    """Values are scaled back, rewards transformed, and returns scaled; a lost life may end one."""
    targets, value = _targets(**changes), np.vectorize(back)(VALUE)
    for b, end in enumerate(ENDS):
        column = (value[:, b], transform(REWARD[:, b]), 0.9 * continuation[:, b], MASK[:, b])
        for t in range(end):
            expected = rescale(np.array(n_step_return(t, *column, 2)))
            assert targets[t, b] == pytest.approx(expected, abs=1e-4), (t, b)


def test_the_items_reach_both_sides_of_every_boundary() -> None:
    for clipped in (REWARD > 1, REWARD < -1, np.abs(REWARD) < 1, LIFE_ENDS < CONTINUATION):
        assert clipped.any()


def _first_priority(eta: float, q_taken: np.ndarray, **changes: Any) -> np.ndarray:
    config = small_config("r2d2", eta=eta, n_step=2, length=ROWS, **changes)
    priority = make_initial_priority(config, ("q_max",), item_targets)
    values = {"q_taken": q_taken.astype(np.float32), "q_max": VALUE}
    return priority(PriorityInput(values, REWARD, CONTINUATION, LIFE_LOST, MASK))


def test_first_priority_mixes_largest_and_mean_error() -> None:
    q_taken = RNG.normal(size=(ROWS + 1, B))
    errors = np.abs(_targets() - q_taken[:-1])
    for b, end in enumerate(ENDS):
        real = errors[:end, b]
        expected = 0.7 * real.max() + 0.3 * real.mean()
        assert _first_priority(0.7, q_taken)[b] == pytest.approx(expected, rel=1e-4)
