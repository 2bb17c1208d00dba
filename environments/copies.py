"""N copies of an environment that is made one at a time: arrays in, arrays out."""

from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode, SyncVectorEnv, VectorWrapper
from gymnasium.wrappers import TransformAction

from environments import conversion, seeding
from environments.losses import Losses
from environments.replaced import Replaced


class Copies(VectorWrapper):
    """N copies of an environment, stepped one after the other.

    Observations and actions are what `environments.conversion` makes of them. A copy that raises
    is replaced; `infos["lost"]`, [N], counts those.

    Args:
      make: makes one; its spaces are such as `conversion` accepts.
      num_envs: N, the number of copies.
    """

    def __init__(self, make: Callable[[], gymnasium.Env], num_envs: int) -> None:
        losses = Losses("environments")

        def copy() -> gymnasium.Env:
            return Replaced(lambda: _acted(_Observed(make())), losses)

        super().__init__(SyncVectorEnv([copy] * num_envs, autoreset_mode=AutoresetMode.NEXT_STEP))

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begins an episode in every copy and returns (observations, infos)."""
        seeds: Any = None if seed is None else seeding.spread(seed, self.num_envs).tolist()
        return self.env.reset(seed=seeds, options=options)

    def step(
        self, actions: np.ndarray
    ) -> tuple[Any, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """Steps every copy; the actions are [N], [N, D] or float32 [N, D], rewards float32 [N]."""
        observations, rewards, terminated, truncated, infos = self.env.step(actions)
        return observations, rewards.astype(np.float32), terminated, truncated, infos


class _Observed(gymnasium.ObservationWrapper):
    """Shows arrays of the kinds that agents know."""

    def __init__(self, env: gymnasium.Env) -> None:
        super().__init__(env)
        self.observation_space, self._convert = conversion.observed(env.observation_space)

    def observation(self, observation: Any) -> Any:
        return self._convert(observation)


def _acted(env: gymnasium.Env) -> TransformAction:
    """Gives each action the form that the environment itself knows it by."""
    space, convert = conversion.acted(env.action_space)
    return TransformAction(env, convert, space)
