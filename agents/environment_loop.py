"""Steps a gymnasium `VectorEnv` with a `RecurrentActor`, and counts what happens."""

import itertools
from collections.abc import Callable
from typing import Any, NamedTuple

import gymnasium
import numpy as np

from agents.actor import RecurrentActor
from replay.structures import FIRST, LAST, MID


class Episode(NamedTuple):
    """One finished episode."""

    environment: int  # which of the N
    episode_return: float  # undiscounted, unclipped
    length: int  # agent steps


class VectorEnvironmentLoop:
    """The loop around N environments that reset on the step after an episode's end.

    That step ignores its action and gives no reward; it is not a step of the environment and is not
    counted, but its row carries the episode's last observation to the writer.

    An environment whose process dies is replaced behind the `VectorEnv`, which truncates the
    episode and counts in `infos["lost"]`, [N]. What such an episode returned tells nothing.

    Attributes:
      lost: processes of environments lost so far.
    """

    def __init__(self, environments: gymnasium.vector.VectorEnv, actor: RecurrentActor) -> None:
        self._environments = environments
        self._actor = actor
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
        """
        was_last = self._step_type == LAST
        action = self._actor.act(self._observation, self._step_type, self._lives)
        observation, reward, terminated, truncated, info = self._environments.step(action)
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

    def run_episodes(self, should_stop: Callable[[], bool] = lambda: False) -> list[Episode]:
        """Plays one episode in each environment, from its start: short ones do not count twice.

        Args:
          should_stop: asked now and then; when it says so, nothing is returned.
        """
        self.restart()
        finished: dict[int, Episode] = {}
        for step in itertools.count():
            if len(finished) == self._n:
                break
            if step % 100 == 0 and should_stop():
                return []
            for episode in self.step()[1]:
                finished.setdefault(episode.environment, episode)
        return [finished[i] for i in range(self._n)]

    def _count_lost(self, info: dict[str, Any]) -> np.ndarray:
        """Which environments have lost processes, `[N]`; one may lose several at a time."""
        lost = np.asarray(info.get("lost", np.zeros(self._n, np.int32)))
        self.lost += int(lost.sum())
        return lost > 0
