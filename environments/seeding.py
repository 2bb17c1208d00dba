"""From the one seed of a run to the random streams of its environments."""

from typing import Any

import numpy as np
from gymnasium.vector import VectorEnv, VectorWrapper


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
    """

    def __init__(self, env: VectorEnv, seed: int) -> None:
        """Wraps an environment.

        Args:
          env: the environment.
          seed: a non-negative Python or numpy integer.

        Raises:
          ValueError: the seed is negative.
        """
        super().__init__(env)
        if seed < 0:
            raise ValueError(f"An environment's seed must not be negative, got {seed}.")
        self._first_seed: int | None = int(seed)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begins an episode in every environment and returns (observations, infos)."""
        if seed is None:
            seed = self._first_seed
        self._first_seed = None
        # Some environments refuse numpy integers, so none ever sees one.
        return self.env.reset(seed=None if seed is None else int(seed), options=options)
