"""Small tasks that a memoryless policy cannot solve.

*Memoryless* means a function, possibly a random one, of the current observation alone. An agent
without recurrence that also receives its previous action is not memoryless in this sense: in
`recall` it could repeat the cue as its action on every step and so carry it to the end.
"""

import dataclasses
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.vector import VectorEnv, VectorWrapper
from gymnasium.vector.utils import batch_space

from environments.batched import BatchedEnv

NUM_CUES = 4
DELAY = 6
"""Blank steps between the cue and the query."""


class Recall(BatchedEnv):
    """Delayed recall: name at the end what was shown at the start.

    An episode has `DELAY + 2` steps. The first observation shows one of `NUM_CUES` cues, drawn
    uniformly; the next `DELAY` show nothing; the last shows only the query, which is the same for
    every cue. The action taken on the query earns +1 if it names the cue and -1 if not, and the
    episode terminates. Every other action is without effect or reward.

    Observations are float32 [NUM_CUES + 1]: the cue as one-hot, then the query.
    """

    action_names = tuple(f"cue {number}" for number in range(NUM_CUES))

    def __init__(self, num_envs: int) -> None:
        """Makes the episodes.

        Args:
          num_envs: N, the number of rows.
        """
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


class PositionCartPole(VectorWrapper):
    """gymnasium's CartPole without its velocities.

    Observations are float32 [2]: the cart's position in metres and the pole's angle in radians.
    Every step is worth 1. A fallen pole or a cart off its track terminates the episode; the limit
    of 500 steps truncates it. `render()` draws the carts.
    """

    action_names = ("left", "right")

    def __init__(self, num_envs: int) -> None:
        """Makes the carts.

        Args:
          num_envs: N, the number of carts.
        """
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

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Begins an episode on every cart and returns (observations, infos)."""
        observations, infos = self.env.reset(seed=seed, options=options)
        return observations[:, _VISIBLE], infos  # [N, 2]

    def step(
        self, actions: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """Pushes every cart to the left (0) or to the right (1)."""
        observations, rewards, terminated, truncated, infos = self.env.step(actions)
        return observations[:, _VISIBLE], rewards, terminated, truncated, infos


@dataclasses.dataclass(frozen=True)
class Task:
    """A task and the returns that tell memory from none."""

    make: Callable[[int], VectorEnv]
    """From the number of environments to the environments."""

    memoryless_optimum: float
    """The mean undiscounted return of the best memoryless policy.

    For `recall` it is exact: the guess at the query is right once in `NUM_CUES` times. For
    `cartpole` it is the best that a search over random policies found, whose probability of going
    right is a cubic polynomial of the observation through a sigmoid, or a table over a grid.
    """

    pass_mark: float
    """A mean return that only a policy with a memory reaches."""


TASKS = {
    "recall": Task(Recall, memoryless_optimum=2 / NUM_CUES - 1, pass_mark=0.8),
    "cartpole": Task(PositionCartPole, memoryless_optimum=52.0, pass_mark=150.0),
}
