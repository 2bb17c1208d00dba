"""Types, seeds and words that all vector environments share."""

import importlib
from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

import numpy as np
from gymnasium.vector import VectorEnv, VectorWrapper

Observations = Any
"""An array [N, ...], or a dictionary of them."""

Begun = tuple[Observations, dict[str, Any]]
"""(observations, infos), as `VectorEnv.reset` returns them."""

Step = tuple[Observations, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]
"""(observations, rewards float32 [N], terminated bool [N], truncated bool [N], infos), as
`VectorEnv.step` returns them."""

ACTION_MASK = "action_mask"
"""The part of an observation that says which actions are legal, uint8 [A]."""


def has_mask(observation: Any) -> bool:
    """Returns whether an observation, a space or a spec of them has a part `ACTION_MASK`."""
    # A space's `in` asks whether a value is in it.
    return isinstance(observation, Mapping) and observation.get(ACTION_MASK) is not None


def masks() -> Any:
    """`environments.copies.masks`, which most environments do without."""
    return importlib.import_module("environments.copies.masks")


@runtime_checkable
class TwoPart(Protocol):
    """An environment whose step has two halves and computes between them."""

    def send(self, actions: np.ndarray) -> None:
        """Begins a step."""

    def recv(self) -> Step:
        """Waits for the step to end."""


def in_a_line(space: Any) -> str:
    """A space as it is printed, without the lines into which numpy lays long bounds out."""
    return " ".join(str(space).split())


def spread(seed: int, num_envs: int) -> np.ndarray:
    """Derives one seed per environment from a common one.

    Consecutive integers would do within one process, but process `seed + 1` would then replay all
    but one of the streams of process `seed`; hashed seeds do not collide.

    Args:
      seed: a non-negative integer.
      num_envs: N, the number of environments.

    Returns:
      int64 [N], each in [0, 2^31), the range of the emulator's seeds.
    """
    return np.random.SeedSequence(seed).generate_state(num_envs).astype(np.int64) >> 1


class SeededVectorEnv(VectorWrapper):
    """Gives an environment's first `reset()` the seed it was made with.

    A later `reset()` without a seed continues the random streams, as gymnasium's convention has
    it; one with a seed begins them anew. Either way the same calls give the same stream.

    Args:
      env: the environment.
      seed: a non-negative Python or numpy integer.

    Raises:
      ValueError: the seed is negative.
    """

    def __init__(self, env: VectorEnv, seed: int) -> None:
        super().__init__(env)
        if seed < 0:
            raise ValueError(f"An environment's seed must not be negative, got {seed}.")
        self._first_seed: int | None = int(seed)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Begun:
        if seed is None:
            seed = self._first_seed
        self._first_seed = None
        # Some environments refuse numpy integers, so none ever sees one.
        return self.env.reset(seed=None if seed is None else int(seed), options=options)
