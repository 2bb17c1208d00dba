"""N copies of an environment that is made one at a time: arrays in, arrays out."""

from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, SyncVectorEnv, VectorWrapper
from gymnasium.wrappers import TransformAction

from environments import seeding
from environments.replaced import Replaced


class Copies(VectorWrapper):
    """N copies of an environment, stepped one after the other.

    A uint8 image [H, W] or [H, W, C] stays what it is; any other observation becomes one float32
    vector, in which a discrete value is one-hot. Actions are numbered from 0, or float32 vectors.
    A copy that raises is replaced; `infos["lost"]`, [N], counts those.

    Args:
      make: makes one; its spaces are such as `observations` and `actions` accept.
      num_envs: N, the number of copies.
    """

    def __init__(self, make: Callable[[], gymnasium.Env], num_envs: int) -> None:
        def copy() -> gymnasium.Env:
            return Replaced(lambda: _plain_actions(_AsArray(make())))

        super().__init__(SyncVectorEnv([copy] * num_envs, autoreset_mode=AutoresetMode.NEXT_STEP))

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Begins an episode in every copy and returns (observations, infos)."""
        seeds: Any = None if seed is None else seeding.spread(seed, self.num_envs).tolist()
        return self.env.reset(seed=seeds, options=options)

    def step(
        self, actions: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """Steps every copy; the actions are integers [N] or float32 [N, D], rewards float32 [N]."""
        observations, rewards, terminated, truncated, infos = self.env.step(actions)
        return observations, rewards.astype(np.float32), terminated, truncated, infos


def observations(space: spaces.Space) -> spaces.Box | None:
    """What an agent sees of an environment's observations; None if they do not form one array."""
    if not space.is_np_flattenable:
        return None
    if _is_image(space):
        assert isinstance(space, spaces.Box)
        return space
    flat = spaces.flatten_space(space)
    assert isinstance(flat, spaces.Box)
    return _as_float32(flat)


def actions(space: spaces.Space) -> spaces.Discrete | spaces.Box | None:
    """How an agent acts: by numbers from 0, or by a bounded vector [D]; None if by neither."""
    if isinstance(space, spaces.Discrete):
        return spaces.Discrete(space.n)
    if not isinstance(space, spaces.Box) or space.dtype.kind != "f" or len(space.shape) != 1:
        return None
    vector = _as_float32(space)
    return vector if np.isfinite([vector.low, vector.high]).all() and space.shape[0] else None


def _is_image(space: spaces.Space) -> bool:
    return isinstance(space, spaces.Box) and space.dtype == np.uint8 and len(space.shape) in (2, 3)


def _as_float32(space: spaces.Box) -> spaces.Box:
    with np.errstate(over="ignore"):  # what float32 cannot hold is unbounded
        return spaces.Box(space.low.astype(np.float32), space.high.astype(np.float32))


class _AsArray(gymnasium.ObservationWrapper):
    """Leaves an image as it is and makes one float32 vector of everything else."""

    def __init__(self, env: gymnasium.Env) -> None:
        super().__init__(env)
        self._flattens = not _is_image(env.observation_space)
        seen = observations(env.observation_space)
        assert seen is not None
        self.observation_space = seen

    def observation(self, observation: Any) -> Any:
        if not self._flattens:
            return observation
        flat = spaces.flatten(self.env.observation_space, observation)
        return np.asarray(flat, np.float32)


def _plain_actions(env: gymnasium.Env) -> TransformAction:
    """Gives each action the form that the environment itself knows it by."""
    space = env.action_space
    if isinstance(space, spaces.Discrete):
        return TransformAction(env, lambda number: number + space.start, actions(space))
    assert isinstance(space, spaces.Box)
    low, high, dtype = space.low, space.high, space.dtype
    # Clipped: the float32 nearest to a bound of float64 may lie beyond it.
    return TransformAction(
        env, lambda vector: np.clip(vector.astype(dtype), low, high), actions(space)
    )
