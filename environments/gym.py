"""Any environment registered with gymnasium whose actions are discrete."""

import functools
from typing import Any, NamedTuple

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, VectorWrapper
from gymnasium.wrappers import TransformAction

from environments import seeding


def ids() -> list[str]:
    """Returns the ids that are registered, sorted."""
    return sorted(gymnasium.registry)


class _Description(NamedTuple):
    """What an environment says of itself once it is made."""

    observations: spaces.Space
    actions: spaces.Space
    metadata: dict[str, Any]


def check(env_id: str) -> None:
    """Makes the environment, unless that was done before, to see that it can be used.

    Args:
        env_id: a registered id.

    Raises:
        ValueError: it cannot be made here, its actions are not discrete, or its observations
            cannot be flattened into a vector.
    """
    actions = _described(env_id).actions
    if not isinstance(actions, spaces.Discrete):
        raise ValueError(f"'gym:{env_id}' must have a discrete action space, but has {actions}.")
    observation_space(env_id)


def observation_space(env_id: str) -> spaces.Box:
    """Returns the space of what one copy of an environment shows in `Gym`.

    Raises:
        ValueError: as `check`, whatever the actions are.
    """
    space = _described(env_id).observations
    wanted = f"'gym:{env_id}' must have observations that form one array, but"
    try:
        shown = _as_array(space) if space.is_np_flattenable else None
    except Exception as error:  # a space of somebody's own need not know
        raise ValueError(f"{wanted} its space cannot say whether: {_in_a_line(error)}") from error
    if shown is None:
        raise ValueError(f"{wanted} has {space}.")
    return shown


def draws(env_id: str) -> bool:
    """Returns whether an environment that `check` accepts can draw itself."""
    return "rgb_array" in _described(env_id).metadata.get("render_modes", ())


def frames_per_second(env_id: str) -> int:
    """Returns how many steps of it people should see in a second."""
    return int(_described(env_id).metadata.get("render_fps", 30))


@functools.cache
def _described(env_id: str) -> _Description:
    """Makes the environment, once: some take seconds and a lot of memory."""
    try:
        env = gymnasium.make(env_id)
        description = _Description(env.observation_space, env.action_space, env.metadata)
        env.close()
    except Exception as error:  # whatever somebody's constructor raises
        raise ValueError(f"gymnasium cannot make 'gym:{env_id}': {_in_a_line(error)}") from error
    return description


def _in_a_line(error: Exception) -> str:
    """The exception's type and the first line of what it says, if it says anything."""
    kind, words = type(error).__name__, str(error).strip()
    return f"{kind}: {words.splitlines()[0]}" if words else f"{kind}."


class _AsArray(gymnasium.ObservationWrapper):
    """Leaves an image as it is and makes one float32 vector of everything else."""

    def __init__(self, env: gymnasium.Env):
        super().__init__(env)
        self._flattens = not _is_image(env.observation_space)
        self.observation_space = _as_array(env.observation_space)

    def observation(self, observation: Any) -> Any:
        if not self._flattens:
            return observation
        flat = spaces.flatten(self.env.observation_space, observation)
        return np.asarray(flat, np.float32)


def _as_array(space: spaces.Space) -> spaces.Box:
    if _is_image(space):
        assert isinstance(space, spaces.Box)
        return space
    flat = spaces.flatten_space(space)
    assert isinstance(flat, spaces.Box)
    low, high = flat.low.astype(np.float32), flat.high.astype(np.float32)
    return spaces.Box(low, high, dtype=np.float32)


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
