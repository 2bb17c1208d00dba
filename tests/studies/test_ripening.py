"""The task of the study of rewards: what its best play is worth, with and without clipping."""

import numpy as np
import pytest

from environments import suites
from studies import ripening
from studies.ripening import STEPS, WORTH


def _play(actions: list[int]) -> list[float]:
    """The rewards of an episode that these actions end."""
    env = suites.make(ripening.NAME, 1, seed=0)
    env.reset()
    rewards = []
    for i, action in enumerate(actions):
        _, reward, terminated, truncated, _ = env.step(np.array([action]))
        rewards.append(float(reward[0]))
        assert terminated[0] == (i == STEPS - 1)
        assert not truncated[0]
    return rewards


def _best_actions(worth: tuple[float, ...], discount: float) -> list[int]:
    """From the unripe fruit on, by dynamic programming over the stages and the steps left."""
    value, choices = np.zeros(len(worth)), []
    for _ in range(STEPS):
        waiting = discount * value[np.minimum(np.arange(len(worth)) + 1, len(worth) - 1)]
        picking = np.array(worth) + discount * value[0]
        choices.append((picking > waiting).astype(int))
        value = np.maximum(waiting, picking)
    stage, actions = 0, []
    for choice in reversed(choices):
        actions.append(int(choice[stage]))
        stage = 0 if actions[-1] else min(stage + 1, len(worth) - 1)
    return actions


@pytest.mark.parametrize("discount", [0.99, 1.0])
def test_the_best_play_waits_for_ripe_fruit(discount: float) -> None:
    actions = _best_actions(WORTH, discount)
    assert actions == [0, 0, 0, 1] * 4
    assert sum(_play(actions)) == ripening.BEST_RETURN == 256


@pytest.mark.parametrize("discount", [0.99, 1.0])
def test_with_clipped_rewards_the_best_play_picks_at_every_step(discount: float) -> None:
    clipped = tuple(np.clip(WORTH, -1, 1))
    actions = _best_actions(clipped, discount)
    assert actions == [1] * STEPS
    assert sum(_play(actions)) == ripening.CLIPPED_RETURN == 16


def test_fruit_ripens_no_further_than_ripe_and_the_next_is_unripe() -> None:
    assert _play([0] * (STEPS - 2) + [1, 1])[-2:] == [WORTH[-1], WORTH[0]]


def test_the_stage_is_seen() -> None:
    env = suites.make(ripening.NAME, 2, seed=0)
    first, _ = env.reset()
    second, *_ = env.step(np.array([0, 1]))
    np.testing.assert_array_equal(first.argmax(axis=1), [0, 0])
    np.testing.assert_array_equal(second.argmax(axis=1), [1, 0])
    np.testing.assert_array_equal(second.sum(axis=1), [1, 1])
