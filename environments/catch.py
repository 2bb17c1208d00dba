"""Catch: a ball falls, a paddle must be under it. The smallest task that learns from pixels."""

import numpy as np
from gymnasium import spaces

from environments.batched import BatchedEnv

ROWS = 10
COLUMNS = 5
LARGE_REWARD = 1000


class Catch(BatchedEnv):
    """N games of catch.

    The ball appears in a random column of the top row and falls one row per step; the paddle
    starts in the middle of the bottom row and goes left (0), stays (1) or goes right (2), at most
    to the wall. When the ball reaches the bottom row, after `ROWS - 1` steps, the episode
    terminates with a reward of +1 if it met the paddle and -1 if it did not.

    Observations are uint8 [ROWS, COLUMNS]: 255 at the ball and at the paddle, 0 elsewhere.
    """

    action_names = ("left", "stay", "right")

    def __init__(self, num_envs: int) -> None:
        """Makes the games.

        Args:
          num_envs: N, the number of games.
        """
        super().__init__(num_envs, spaces.Box(0, 255, (ROWS, COLUMNS), np.uint8), num_actions=3)
        self._ball_row = np.zeros(num_envs, np.int64)
        self._ball_column = np.zeros(num_envs, np.int64)
        self._paddle = np.zeros(num_envs, np.int64)

    def _begin(self, rows: np.ndarray) -> None:
        self._ball_row[rows] = 0
        self._ball_column[rows] = self.np_random.integers(COLUMNS, size=rows.sum())
        self._paddle[rows] = COLUMNS // 2

    def _advance(self, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        self._paddle = np.clip(self._paddle + actions - 1, 0, COLUMNS - 1)
        self._ball_row += 1
        landed = self._ball_row == ROWS - 1
        outcome = np.where(self._ball_column == self._paddle, 1, -1)
        return np.where(landed, outcome, 0), landed

    def _observe(self) -> np.ndarray:
        boards = np.zeros((self.num_envs, ROWS, COLUMNS), np.uint8)
        games = np.arange(self.num_envs)
        boards[games, self._ball_row, self._ball_column] = 255
        boards[games, ROWS - 1, self._paddle] = 255
        return boards


class LargeRewards(Catch):
    """Catch upside down, played for ±`LARGE_REWARD`.

    The ball rises and the paddle is in the top row, so the observations tell it from `Catch`. Of
    two tasks that are equally hard, this is the one that an agent without normalisation attends to.
    """

    def _advance(self, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        outcome, landed = super()._advance(actions)
        return LARGE_REWARD * outcome, landed

    def _observe(self) -> np.ndarray:
        return super()._observe()[:, ::-1]


TASKS = {"large_rewards": LargeRewards}
"""The variants, which are named `catch:<task>`."""
