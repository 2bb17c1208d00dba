"""Any environment registered with gymnasium whose actions are discrete."""

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, VectorWrapper
from gymnasium.wrappers import TransformAction

from environments import seeding


def ids() -> list[str]:
    """Returns the ids that are registered, sorted."""
    return sorted(gymnasium.registry)


def check(env_id: str) -> None:
    """Makes the environment once to see that it can be used.

    Args:
        env_id: a registered id.

    Raises:
        ValueError: it cannot be made here, its actions are not discrete, or its observations
            cannot be flattened into a vector.
    """
    try:
        env = gymnasium.make(env_id)
    except (gymnasium.error.Error, ImportError) as error:
        raise ValueError(f"gymnasium cannot make 'gym:{env_id}': {error}") from error
    actions, observations = env.action_space, env.observation_space
    env.close()
    if not isinstance(actions, spaces.Discrete):
        raise ValueError(f"'gym:{env_id}' must have a discrete action space, but has {actions}.")
    if not observations.is_np_flattenable:
        raise ValueError(
            f"'gym:{env_id}' must have observations that form one array, but has {observations}."
        )


def draws(env_id: str) -> bool:
    """Returns whether an environment that `check` accepts can draw itself."""
    return "rgb_array" in _metadata(env_id).get("render_modes", ())


def frames_per_second(env_id: str) -> int:
    """Returns how many steps of it people should see in a second."""
    return int(_metadata(env_id).get("render_fps", 30))


def _metadata(env_id: str) -> dict[str, Any]:
    env = gymnasium.make(env_id)
    env.close()
    return env.metadata


class _AsArray(gymnasium.ObservationWrapper):
    """Leaves an image as it is and makes one float32 vector of everything else."""

    def __init__(self, env: gymnasium.Env):
        super().__init__(env)
        space = env.observation_space
        self._flattens = not _is_image(space)
        if self._flattens:
            flat = spaces.flatten_space(space)
            assert isinstance(flat, spaces.Box)
            low, high = flat.low.astype(np.float32), flat.high.astype(np.float32)
            self.observation_space = spaces.Box(low, high, dtype=np.float32)

    def observation(self, observation: Any) -> Any:
        if not self._flattens:
            return observation
        flat = spaces.flatten(self.env.observation_space, observation)
        return np.asarray(flat, np.float32)


def _is_image(space: spaces.Space) -> bool:
    return isinstance(space, spaces.Box) and space.dtype == np.uint8 and len(space.shape) in (2, 3)


def _from_zero(env: gymnasium.Env) -> TransformAction:
    """Numbers the actions from 0, whatever the environment's own first one is."""
    space = env.action_space
    assert isinstance(space, spaces.Discrete)
    start = space.start
    return TransformAction(env, lambda action: action + start, spaces.Discrete(space.n))


class Gym(VectorWrapper):
    """N copies of a registered environment, stepped one after the other.

    A uint8 image [H, W] or [H, W, C] stays what it is; any other observation becomes one float32
    vector, in which a discrete value is one-hot.
    """

    def __init__(self, env_id: str, num_envs: int, *, render_mode: str | None = None):
        """Makes the copies.

        Args:
            env_id: an id that `check` accepts.
            num_envs: N, the number of copies.
            render_mode: how `render()` draws them; None where nobody looks on.
        """
        super().__init__(
            gymnasium.make_vec(
                env_id,
                num_envs,
                vectorization_mode="sync",
                vector_kwargs={"autoreset_mode": AutoresetMode.NEXT_STEP},
                wrappers=[_AsArray, _from_zero],
                # An environment that cannot be drawn need not take a render mode.
                **({} if render_mode is None else {"render_mode": render_mode}),
            )
        )

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Begins an episode in every copy and returns (observations, infos)."""
        seeds: Any = None if seed is None else seeding.spread(seed, self.num_envs).tolist()
        return self.env.reset(seed=seeds, options=options)

    def step(
        self, actions: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """Steps every copy; the rewards are float32 [N]."""
        observations, rewards, terminated, truncated, infos = self.env.step(actions)
        return observations, rewards.astype(np.float32), terminated, truncated, infos
