"""A recorded stream of a game, to be written again and again: then writing costs no playing."""

import functools
from collections.abc import Iterator

import numpy as np

from benchmarks.subject import GAME
from environments import suites
from replay.structures import FIRST, MID, Step

NUM_ENVIRONMENTS = 32
_ROWS = 200  # of Pong's first points; they compress like any others
_SEED = 0


class Recording:
    """The first rows of environments that play at random.

    Args:
      num_actions: of the game.
    """

    def __init__(self, num_actions: int) -> None:
        environments = suites.make(GAME, NUM_ENVIRONMENTS, seed=_SEED)
        rng = np.random.default_rng(_SEED)
        observation, info = environments.reset()
        self._steps = []
        for _ in range(_ROWS):
            action = rng.integers(num_actions, size=NUM_ENVIRONMENTS, dtype=np.int32)
            following, reward, _, _, next_info = environments.step(action)
            self._steps.append(_step(observation, info["lives"], action, reward, num_actions))
            observation, info = following, next_info
        environments.close()

    def rows(self) -> Iterator[Step]:
        """One endless episode: the recording over and over, FIRST at its very beginning only."""
        first = self._steps[0]
        yield first._replace(step_type=np.full_like(first.step_type, FIRST))
        yield from self._steps[1:]
        while True:
            yield from self._steps


@functools.cache
def recorded(num_actions: int) -> Recording:
    """One for all that ask: the emulators alone take seconds to make."""
    return Recording(num_actions)


def _step(
    observation: np.ndarray,
    lives: np.ndarray,
    action: np.ndarray,
    reward: np.ndarray,
    num_actions: int,
) -> Step:
    n = len(action)
    return Step(
        observation=observation.copy(),
        step_type=np.full(n, MID, np.uint8),
        lives=lives.astype(np.uint8),
        action=action,
        log_probability=np.full(n, -np.log(num_actions), np.float32),
        reward=reward,
        continuation=np.ones(n, np.float32),
    )
