"""The project's own small tasks, which take no simulator: catch, and two that need a memory."""

import abc
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, VectorEnv, VectorObservationWrapper
from gymnasium.vector.utils import batch_space

from environments import kinds
from environments.copies.vector import Begun, Step

ROWS = 10
COLUMNS = 5
LARGE_REWARD = 1000
NUM_CUES = 4
DELAY = 6
"""Blank steps between the cue and the query."""


class BatchedEnv(VectorEnv, abc.ABC):
    """Steps N episodes at once by three array operations, and resets on the next step.

    A row's step after its episode's end ignores the action, pays nothing, and returns the first
    observation of the new episode. A subclass says how some rows begin an episode (`_begin`), how
    every row advances (`_advance`), and what every row shows (`_observe`). There is no time limit,
    so nothing is ever truncated.

    Args:
      num_envs: N, the number of rows.
      observation_space: what one row shows.
      num_actions: A; actions are 0 to A - 1.
    """

    def __init__(self, num_envs: int, observation_space: spaces.Box, num_actions: int) -> None:
        self.metadata = {"autoreset_mode": AutoresetMode.NEXT_STEP}
        self.num_envs = num_envs
        self.single_observation_space = observation_space
        self.single_action_space = spaces.Discrete(num_actions)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._ended = np.zeros(num_envs, bool)  # [N]

    @abc.abstractmethod
    def _begin(self, rows: np.ndarray) -> None:
        """Begins an episode in the rows that the mask, bool [N], selects."""

    @abc.abstractmethod
    def _advance(self, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Advances every row, ended ones too, and returns (rewards, terminated), both [N]."""

    @abc.abstractmethod
    def _observe(self) -> np.ndarray:
        """Shows each row, [N, ...], in a new array."""

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Begun:
        super().reset(seed=seed, options=options)
        self._begin(np.ones(self.num_envs, bool))
        self._ended = np.zeros(self.num_envs, bool)
        return self._observe(), {}

    def step(self, actions: np.ndarray) -> Step:
        if not self.action_space.contains(actions):
            raise ValueError(f"Actions must lie in {self.action_space}, got {actions!r}.")
        resetting = self._ended
        rewards, terminated = self._advance(actions)
        self._begin(resetting)
        rewards = np.where(resetting, 0, rewards).astype(np.float32)
        self._ended = terminated & ~resetting
        return self._observe(), rewards, self._ended.copy(), np.zeros(self.num_envs, bool), {}


class Catch(BatchedEnv):
    """N games of catch: a ball falls, a paddle must be under it.

    The ball appears in a random column of the top row and falls one row per step; the paddle
    starts in the middle of the bottom row and goes left (0), stays (1) or goes right (2), at most
    to the wall. When the ball reaches the bottom row, after `ROWS - 1` steps, the episode
    terminates with a reward of +1 if it met the paddle and -1 if it did not.

    Observations are uint8 [ROWS, COLUMNS]: 255 at the ball and at the paddle, 0 elsewhere.
    """

    action_names = ("left", "stay", "right")

    def __init__(self, num_envs: int) -> None:
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


class Recall(BatchedEnv):
    """Delayed recall: name at the end the cue shown at the start.

    An episode has `DELAY + 2` steps. The first observation shows one of `NUM_CUES` cues, drawn
    uniformly; the next `DELAY` show nothing; the last shows only the query, which is the same for
    every cue. The action taken on the query earns +1 if it names the cue and -1 if not, and the
    episode terminates. Every other action is without effect or reward.

    Observations are float32 [NUM_CUES + 1]: the cue as one-hot, then the query.
    """

    action_names = tuple(f"cue {number}" for number in range(NUM_CUES))

    def __init__(self, num_envs: int) -> None:
        super().__init__(num_envs, spaces.Box(0, 1, (NUM_CUES + 1,), np.float32), NUM_CUES)
        self._cue = np.zeros(num_envs, np.int64)
        self._time = np.zeros(num_envs, np.int64)

    def _begin(self, rows: np.ndarray) -> None:
        self._cue[rows] = self.np_random.integers(NUM_CUES, size=rows.sum())
        self._time[rows] = 0

    def _advance(self, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        answered = self._time == DELAY + 1
        outcome = np.where(actions == self._cue, 1, -1)
        self._time += 1
        return np.where(answered, outcome, 0), answered

    def _observe(self) -> np.ndarray:
        observations = np.zeros((self.num_envs, NUM_CUES + 1), np.float32)
        observations[np.arange(self.num_envs), self._cue] = self._time == 0
        observations[:, NUM_CUES] = self._time == DELAY + 1
        return observations


_VISIBLE = [0, 2]  # of position, velocity, angle, angular velocity


class PositionCartPole(VectorObservationWrapper):
    """gymnasium's CartPole without its velocities.

    Observations are float32 [2]: the cart's position in metres and the pole's angle in radians.
    An action pushes a cart to the left (0) or to the right (1); every step is worth 1. A fallen
    pole or a cart off its track terminates the episode; the limit of 500 steps truncates it.
    `render()` draws the carts.
    """

    action_names = ("left", "right")

    def __init__(self, num_envs: int) -> None:
        super().__init__(
            gymnasium.make_vec(
                "CartPole-v1",
                num_envs,
                vectorization_mode="vector_entry_point",
                render_mode="rgb_array",
            )
        )
        whole = self.env.single_observation_space
        assert isinstance(whole, spaces.Box)
        self.single_observation_space = spaces.Box(
            whole.low[_VISIBLE], whole.high[_VISIBLE], dtype=np.float32
        )
        self.observation_space = batch_space(self.single_observation_space, num_envs)

    def observations(self, observations: np.ndarray) -> np.ndarray:
        return observations[:, _VISIBLE]  # [N, 2]


CATCH = {"": Catch, "large_rewards": LargeRewards}
"""The environments of `catch` and `catch:<task>`."""

MEMORY: dict[str, Callable[[int], VectorEnv]] = {"recall": Recall, "cartpole": PositionCartPole}
"""The tasks of `memory:<task>`."""


def _variants_of_catch() -> list[str]:
    return [task for task in CATCH if task]


KINDS = {
    "catch": kinds.Kind(
        form=f"catch[:{'|'.join(_variants_of_catch())}]",
        make=lambda task, num_envs, options: CATCH[task.rest](num_envs),
        tasks=_variants_of_catch,
        knows=lambda task: task.name == "catch" or task.rest in _variants_of_catch(),
    ),
    "memory": kinds.Kind(
        form=f"memory:<{'|'.join(MEMORY)}>",
        make=lambda task, num_envs, options: MEMORY[task.rest](num_envs),
        tasks=lambda: sorted(MEMORY),
    ),
}
