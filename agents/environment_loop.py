"""Steps a gymnasium `VectorEnv` with a `RecurrentActor`, and counts steps and episodes."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import gymnasium
import numpy as np

from agents.actor import RecurrentActor
from agents.finite import check_rewards
from replay.structures import FIRST, LAST, MID


class Episode(NamedTuple):
    """One finished episode."""

    environment: int  # which of the N
    episode_return: float  # undiscounted, unclipped
    length: int  # actor steps


class VectorEnvironmentLoop:
    """The loop around N environments that reset on the step after an episode's end.

    That step ignores its action and gives no reward; it is not a step of the environment and is not
    counted, but its row carries the episode's last observation to the writer.

    An environment that dies is replaced behind the `VectorEnv`, which truncates the episode and
    counts in `infos["lost"]`, [N]. The return of such an episode tells nothing.

    Args:
      names: `[N]`, the name of each environment, for errors.

    Attributes:
      lost: processes of environments lost so far.
    """

    def __init__(
        self, environments: gymnasium.vector.VectorEnv, actor: RecurrentActor, names: Sequence[str]
    ) -> None:
        self._environments = environments
        self._actor = actor
        self._names = names
        self._n = environments.num_envs
        self.lost = 0
        self.restart()

    def restart(self) -> None:
        """Begins a new episode in every environment."""
        self._observation, info = self._environments.reset()
        self._count_lost(info)
        self._lives = np.asarray(info.get("lives", np.zeros(self._n)), np.uint8)
        self._step_type = np.full(self._n, FIRST, np.uint8)
        self._returns = np.zeros(self._n)
        self._lengths = np.zeros(self._n, np.int64)

    def step(self) -> tuple[int, list[Episode]]:
        """One step of all N environments.

        Returns:
          How many of them made a step (rows that only reset are none), and the episodes that ended
          by themselves.

        Raises:
          NotFiniteError: when a reward is not; the writer has seen nothing of such a step.
        """
        was_last = self._step_type == LAST
        action = self._actor.act(self._observation, self._step_type, self._lives)
        observation, reward, terminated, truncated, info = self._environments.step(action)
        check_rewards(reward, self._names)
        self._actor.observe(reward, ~terminated)
        self._actor.update()

        self._observation = observation
        self._lives = np.asarray(info.get("lives", self._lives), np.uint8)
        lost = self._count_lost(info)
        done = terminated | truncated
        self._step_type = np.where(was_last, FIRST, np.where(done, LAST, MID)).astype(np.uint8)
        self._returns += reward
        self._lengths += ~was_last
        episodes = [
            Episode(int(i), float(self._returns[i]), int(self._lengths[i]))
            for i in np.flatnonzero(done & ~lost)
        ]
        self._returns[done] = 0
        self._lengths[done] = 0
        return int(self._n - was_last.sum()), episodes

    def play(self, shares: Sequence[int] | np.ndarray) -> Iterator[tuple[int, list[Episode]]]:
        """Plays `shares`, `[N]`, episodes in each environment, from their start.

        The first so many episodes to end, whichever environment they are from, would be the short
        ones. Yields after every step what `step` returns, without the episodes that an environment
        plays beyond its share, while others still play theirs.
        """
        self.restart()
        left = np.array(shares)
        while left.any():
            steps, ended = self.step()
            told = [episode for episode in ended if left[episode.environment]]
            left[[episode.environment for episode in told]] -= 1
            yield steps, told

    def play_in_all(self, episodes: int) -> Iterator[tuple[int, list[Episode]]]:
        """Plays so many episodes in all environments together, each its share, as `play`."""
        n = self._n
        return self.play(episodes // n + (np.arange(n) < episodes % n))

    def run_episodes(self, should_stop: Callable[[], bool] = lambda: False) -> list[Episode]:
        """One episode of each environment, in their order; none when `should_stop` says so."""
        finished: list[Episode] = []
        for _, ended in self.play([1] * self._n):
            if should_stop():
                return []
            finished += ended
        return sorted(finished)

    def _count_lost(self, info: dict[str, Any]) -> np.ndarray:
        """Returns the environments that have lost processes, `[N]` bool; one may lose several."""
        lost = np.asarray(info.get("lost", np.zeros(self._n, np.int32)))
        self.lost += int(lost.sum())
        return lost > 0
