"""Catch against a naive game, and its returns under the best and the worst play."""

import numpy as np
import pytest

from environments import small_tasks, suites


class NaiveCatch:
    """One game, written with plain numbers."""

    def __init__(self, ball_column: int):
        self.ball = [0, ball_column]
        self.paddle = 2

    def step(self, action: int) -> tuple[float, bool]:
        self.paddle = min(max(self.paddle + {0: -1, 1: 0, 2: 1}[action], 0), 4)
        self.ball[0] += 1
        if self.ball[0] < 9:
            return 0.0, False
        return (1.0 if self.ball[1] == self.paddle else -1.0), True

    def board(self) -> np.ndarray:
        board = np.zeros((10, 5), np.uint8)
        board[self.ball[0]][self.ball[1]] = 255
        board[9][self.paddle] = 255
        return board


def test_equals_the_naive_game() -> None:
    env = suites.make("catch", 7, seed=3)
    observations, _ = env.reset()
    games = [NaiveCatch(int(board[0].argmax())) for board in observations]
    over = [False] * 7
    rng = np.random.default_rng(0)
    walls = outcomes = 0
    for _ in range(120):
        actions = rng.integers(3, size=7)
        walls += sum(
            game.paddle + action - 1 in (-1, 5) for game, action in zip(games, actions, strict=True)
        )
        observations, rewards, terminated, truncated, _ = env.step(actions)
        for row, game in enumerate(games):
            if over[row]:
                games[row] = NaiveCatch(int(observations[row][0].argmax()))
                expected, over[row] = 0.0, False
            else:
                expected, over[row] = game.step(actions[row])
            assert (rewards[row], terminated[row], truncated[row]) == (expected, over[row], False)
            np.testing.assert_array_equal(observations[row], games[row].board())
            outcomes |= {1.0: 1, -1.0: 2}.get(expected, 0)
    assert walls > 0
    assert outcomes == 3  # both were met


def test_first_boards_hold_the_ball_on_top_in_every_column_alike() -> None:
    observations, _ = suites.make("catch", 5000, seed=0).reset()
    assert (observations[:, 0] == 255).sum() == 5000
    np.testing.assert_array_equal(observations[:, 9], np.tile([0, 0, 255, 0, 0], (5000, 1)))
    np.testing.assert_allclose((observations[:, 0] == 255).mean(axis=0), 0.2, atol=0.03)


@pytest.mark.parametrize(("towards", "expected"), [(1, 1.0), (-1, -1.0)])
def test_following_the_ball_wins_and_fleeing_it_loses(towards: int, expected: float) -> None:
    env = suites.make("catch", 50, seed=1)
    observations, _ = env.reset()
    for _ in range(9):
        ball = observations[:, :9].max(axis=1).argmax(axis=1)
        paddle = observations[:, 9].argmax(axis=1)
        away = np.where(ball >= 2, -1, 1)
        direction = np.sign(ball - paddle) if towards == 1 else away
        observations, rewards, terminated, *_ = env.step(1 + direction)
    assert terminated.all()
    np.testing.assert_array_equal(rewards, expected)


@pytest.mark.parametrize("actions", [[0, 3], [-1, 0], [0], [[0, 1]], [0.5, 1.0]])
def test_bad_actions_are_refused(actions: list) -> None:
    env = small_tasks.Catch(2)
    env.reset(seed=0)
    with pytest.raises(ValueError, match=r"Actions must lie in .*, got"):
        env.step(np.array(actions))


def test_large_rewards_are_those_of_catch_upside_down() -> None:
    plain, large = small_tasks.Catch(6), small_tasks.LargeRewards(6)
    board, _ = plain.reset(seed=4)
    flipped, _ = large.reset(seed=4)
    rng = np.random.default_rng(0)
    seen = set()
    for _ in range(60):
        np.testing.assert_array_equal(flipped, np.flip(board, axis=1))
        actions = rng.integers(3, size=6)
        board, rewards, terminated, *_ = plain.step(actions)
        flipped, large_rewards, large_terminated, *_ = large.step(actions)
        np.testing.assert_array_equal(large_rewards, 1000 * rewards)
        np.testing.assert_array_equal(large_terminated, terminated)
        seen |= set(large_rewards)
    assert seen == {-1000, 0, 1000}
