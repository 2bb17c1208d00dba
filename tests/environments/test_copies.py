"""What an environment that is made one at a time is given and shows, N at a time."""

from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from environments import copies

LOW, HIGH = np.array([0.7, -3.0]), np.array([1.1, 5.0])


class Echo(gymnasium.Env):
    """Shows the action it was given, and pays its sum."""

    observation_space = spaces.Box(-np.inf, np.inf, (2,), np.float64)

    def __init__(self, dtype: Any) -> None:
        self.action_space = spaces.Box(LOW.astype(dtype), HIGH.astype(dtype), dtype=dtype)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        return np.zeros(2), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        assert action.dtype == self.action_space.dtype
        assert self.action_space.contains(action)
        return action, float(action.sum()), False, False, {}


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_vectors_reach_each_copy_in_its_own_type_and_bounds(dtype: Any) -> None:
    env = copies.Copies(lambda: Echo(dtype), 3)
    space = env.single_action_space
    assert isinstance(space, spaces.Box)
    assert space.dtype == env.action_space.dtype == np.float32
    env.reset(seed=0)
    third = np.array([1, 0.25], np.float32)
    given = np.stack([space.low, space.high, third])  # [N, D], the bounds too
    assert env.action_space.contains(given)
    observations, rewards, *_ = env.step(given)
    np.testing.assert_allclose(observations, given, rtol=1e-3)
    np.testing.assert_allclose(rewards, given.sum(axis=1), rtol=1e-3)
    assert rewards.dtype == np.float32
