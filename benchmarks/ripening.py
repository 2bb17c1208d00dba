"""A task whose rewards differ in size: whoever sees only their signs plays it badly.

Importing this module registers it with gymnasium, so that its name is `gym:docs/Ripening-v0`.
"""

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

NAME = "gym:docs/Ripening-v0"
STEPS = 16
WORTH = (1.0, 4.0, 16.0, 64.0)
"""The reward for a fruit, by the steps it was left to ripen; it ripens no further."""


class Ripening(gymnasium.Env):
    """One bush. Waiting (0) ripens its fruit by a stage, picking (1) takes it and a new one begins.

    Observations are float32 `[len(WORTH)]`, the stage as one-hot. An episode terminates after
    `STEPS` steps.
    """

    observation_space = spaces.Box(0, 1, (len(WORTH),), np.float32)
    action_space = spaces.Discrete(2)

    def __init__(self) -> None:
        self._stage = 0
        self._time = 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Begins with an unripe fruit."""
        super().reset(seed=seed, options=options)
        self._stage = self._time = 0
        return self._observe(), {}

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """Waits or picks."""
        picks = bool(action)
        reward = WORTH[self._stage] if picks else 0.0
        self._stage = 0 if picks else min(self._stage + 1, len(WORTH) - 1)
        self._time += 1
        return self._observe(), reward, self._time == STEPS, False, {}

    def _observe(self) -> np.ndarray:
        return np.eye(len(WORTH), dtype=np.float32)[self._stage]


gymnasium.register("docs/Ripening-v0", entry_point="benchmarks.ripening:Ripening")
