"""The base of the environments that step N episodes at once as numpy arrays."""

import abc
from typing import Any

import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space


class BatchedEnv(VectorEnv, abc.ABC):
    """The next-step autoreset protocol around three array operations.

    A row's step after its episode's end ignores the action, pays nothing, and returns the first
    observation of the new episode. A subclass says how some rows begin an episode (`_begin`), how
    every row advances (`_advance`), and what every row shows (`_observe`).
    """

    def __init__(self, num_envs: int, observation_space: spaces.Box, num_actions: int) -> None:
        """Declares the spaces.

        Args:
          num_envs: N, the number of rows.
          observation_space: what one row shows.
          num_actions: A; actions are 0 to A - 1.
        """
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
        """What each row shows, [N, ...], in a new array."""

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Begins an episode in every row and returns (observations, infos)."""
        super().reset(seed=seed, options=options)
        self._begin(np.ones(self.num_envs, bool))
        self._ended = np.zeros(self.num_envs, bool)
        return self._observe(), {}

    def step(
        self, actions: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """Steps every row.

        Args:
          actions: integers [N], each in [0, A).

        Returns:
          (observations [N, ...], rewards float32 [N], terminated bool [N], truncated bool [N],
          infos); these environments have no time limit, so nothing is ever truncated.

        Raises:
          ValueError: the actions have another shape or lie outside the range.
        """
        if not self.action_space.contains(actions):
            raise ValueError(f"Actions must lie in {self.action_space}, got {actions!r}.")
        resetting = self._ended
        rewards, terminated = self._advance(actions)
        self._begin(resetting)
        rewards = np.where(resetting, 0, rewards).astype(np.float32)
        self._ended = terminated & ~resetting
        return self._observe(), rewards, self._ended.copy(), np.zeros(self.num_envs, bool), {}
