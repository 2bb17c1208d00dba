"""The loop around a gymnasium VectorEnv: how it counts steps, episodes and evaluations."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from agents.environment_loop import Episode, VectorEnvironmentLoop
from tests.agents.recording import Recorder, recorded_actor


class Lengths:
    """N environments; episode k of environment i lasts `lengths[i][k]` steps, for ever repeated.

    Each step is worth 1, but for the last, worth 10. Every second episode is cut off.
    """

    def __init__(self, lengths: list[list[int]], lost: Sequence[tuple[int, int]] = ()) -> None:
        self.num_envs = len(lengths)
        self._lengths = lengths
        self._lost = lost  # (environment, episode) that is cut off by its process's death
        self._episode = [0] * self.num_envs

    def reset(self) -> tuple[np.ndarray, dict[str, Any]]:
        self._step = [0] * self.num_envs
        self._ended = [False] * self.num_envs
        return np.zeros((self.num_envs, 1), np.float32), {"lives": np.full(self.num_envs, 3)}

    def step(self, action: np.ndarray) -> tuple[Any, ...]:
        rewards, terminated, truncated, lost = np.zeros((4, self.num_envs))
        for i in range(self.num_envs):
            if self._ended[i]:
                self._ended[i], self._step[i] = False, 0
                continue
            self._step[i] += 1
            lengths = self._lengths[i]
            self._ended[i] = self._step[i] == lengths[self._episode[i] % len(lengths)]
            rewards[i] = 10 if self._ended[i] else 1
            (truncated if self._episode[i] % 2 else terminated)[i] = self._ended[i]
            lost[i] = self._ended[i] and (i, self._episode[i]) in self._lost
            self._episode[i] += self._ended[i]
        infos = {"lives": np.full(self.num_envs, 2), "lost": lost.astype(np.int32)}
        observation = np.zeros((self.num_envs, 1), np.float32)
        return observation, rewards, terminated.astype(bool), truncated.astype(bool), infos


def _loop(
    lengths: list[list[int]], lost: Sequence[tuple[int, int]] = ()
) -> tuple[VectorEnvironmentLoop, Recorder]:
    actor, recorder = recorded_actor(len(lengths))
    environments: Any = Lengths(lengths, lost)
    return VectorEnvironmentLoop(environments, actor, ["lengths"] * len(lengths)), recorder


def test_steps_that_only_reset_do_not_count() -> None:
    loop, recorder = _loop([[2], [3]])
    counted = [loop.step()[0] for _ in range(12)]
    #  step types 0 1 2 0 1 2 ... and 0 1 1 2 0 1 1 2 ...
    assert counted == [2, 2, 1, 1, 2, 1, 2, 1, 1, 2, 2, 0]
    assert sum(counted) == (recorder.column("step_type") != 2).sum()


def test_episodes_are_told_when_they_end_with_their_own_return() -> None:
    loop, _ = _loop([[2, 1], [3]])
    told = [(t, episode) for t in range(9) for episode in loop.step()[1]]
    assert told == [
        (1, Episode(0, 11.0, 2)),
        (2, Episode(1, 12.0, 3)),
        (3, Episode(0, 10.0, 1)),
        (6, Episode(0, 11.0, 2)),
        (6, Episode(1, 12.0, 3)),
        (8, Episode(0, 10.0, 1)),
    ]


def test_an_evaluation_counts_one_episode_of_each_environment() -> None:
    loop, _ = _loop([[5], [1, 9], [3]])
    assert loop.run_episodes() == [Episode(0, 14.0, 5), Episode(1, 10.0, 1), Episode(2, 12.0, 3)]
    # The next one begins anew everywhere, not where the last one broke off.
    assert [e.environment for e in loop.run_episodes()] == [0, 1, 2]
    assert loop.run_episodes()[0] == Episode(0, 14.0, 5)


def test_each_environment_plays_its_share_however_long_its_episodes_are() -> None:
    loop, _ = _loop([[1], [6, 2], [3]])
    told = list(loop.play([2, 3, 0]))
    assert [(step, e) for step, (_, ended) in enumerate(told, start=1) for e in ended] == [
        (1, Episode(0, 10.0, 1)),
        (3, Episode(0, 10.0, 1)),
        (6, Episode(1, 15.0, 6)),
        (9, Episode(1, 11.0, 2)),
        (16, Episode(1, 15.0, 6)),
    ]
    assert [steps for steps, _ in told[:4]] == [3, 2, 3, 1]  # rows that only reset are no steps
    # What follows begins anew, in the middle of no episode.
    assert [e for _, ended in loop.play([0, 0, 1]) for e in ended] == [Episode(2, 12.0, 3)]


def test_an_episode_whose_process_died_is_cut_off_and_counts_for_nothing() -> None:
    loop, recorder = _loop([[2, 4]], lost=[(0, 1)])
    told = [episode for _ in range(11) for episode in loop.step()[1]]
    assert told == [Episode(0, 11.0, 2), Episode(0, 11.0, 2)]
    assert loop.lost == 1
    # Cut off, it goes on for the learner: the last step's observation is bootstrapped from.
    assert recorder.column("step_type")[2:9, 0].tolist() == [2, 0, 1, 1, 1, 2, 0]
    assert recorder.column("continuation")[3:7, 0].tolist() == [1, 1, 1, 1]


def test_every_lost_process_counts_those_of_a_reset_too() -> None:
    class Losing(Lengths):
        def reset(self) -> tuple[np.ndarray, dict[str, Any]]:
            observation, infos = super().reset()
            return observation, infos | {"lost": np.array([0, 2], np.int32)}

    environments: Any = Losing([[2], [3]])
    loop = VectorEnvironmentLoop(environments, recorded_actor()[0], ["losing"] * 2)
    assert loop.lost == 2
    loop.restart()
    assert loop.lost == 4
