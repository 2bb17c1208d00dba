"""The autoreset protocol on the shortest episodes there are."""

import numpy as np
from gymnasium import spaces

from environments.small_tasks import BatchedEnv


class EveryStepPaysAndEnds(BatchedEnv):
    """Shows how many episodes the row has begun; each has a single step."""

    def __init__(self, num_envs: int):
        super().__init__(num_envs, spaces.Box(0, 99, (1,), np.float32), num_actions=2)
        self._begun = np.zeros(num_envs, np.int64)

    def _begin(self, rows: np.ndarray) -> None:
        self._begun[rows] += 1

    def _advance(self, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return 1 + actions, np.ones(self.num_envs, bool)

    def _observe(self) -> np.ndarray:
        return self._begun[:, None].astype(np.float32)


def test_the_step_that_only_resets_neither_pays_nor_ends() -> None:
    env = EveryStepPaysAndEnds(2)
    observations, _ = env.reset(seed=0)
    np.testing.assert_array_equal(observations, [[1], [1]])
    for episode in range(1, 4):
        observations, rewards, terminated, _, _ = env.step(np.array([0, 1]))
        np.testing.assert_array_equal(observations, [[episode], [episode]])
        np.testing.assert_array_equal(rewards, [1, 2])
        assert terminated.all()
        observations, rewards, terminated, _, _ = env.step(np.array([0, 1]))
        np.testing.assert_array_equal(observations, [[episode + 1], [episode + 1]])
        np.testing.assert_array_equal(rewards, [0, 0])
        assert not terminated.any()
