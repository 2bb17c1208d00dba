"""Several tasks in one environment: each plays as it would alone."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, VectorEnv, VectorWrapper

from environments import atari, small_tasks, suites
from environments.copies import vector
from environments.copies.dead_simulators import CannotPlayError
from environments.multitask import MultiTaskEnv

SEED = 5


class Recorded(VectorWrapper):
    """Notes what it is told in a log that several share; its rows have two lives each."""

    def __init__(self, env: VectorEnv, name: str, log: list[str]):
        super().__init__(env)
        self._name, self._log = name, log

    def step(self, actions: np.ndarray) -> vector.Step:
        self._log.append(f"{self._name} steps")
        *arrays, _ = self.env.step(actions)
        return *arrays, {"lives": np.full(self.num_envs, 2, np.int32)}

    def close(self, **kwargs: Any) -> None:
        self._log.append(f"{self._name} closes")


class Sending(Recorded):
    """The same in two halves."""

    def send(self, actions: np.ndarray) -> None:
        self._log.append(f"{self._name} is sent")
        self._actions = actions

    def recv(self) -> vector.Step:
        self._log.append(f"{self._name} is received")
        return self.env.step(self._actions)


def _runs(names: Sequence[str]) -> list[tuple[str, slice]]:
    """The rows of each task."""
    starts = [i for i, name in enumerate(names) if i == 0 or names[i - 1] != name]
    ends = [*starts[1:], len(names)]
    return [(names[start], slice(start, end)) for start, end in zip(starts, ends, strict=True)]


@pytest.mark.parametrize(
    ("names", "steps"),
    [
        (["catch:large_rewards"] * 3 + ["catch"] * 2, 40),
        (["atari:pong"] * 2 + ["atari:breakout"] * 3 + ["atari:seaquest"], 250),
    ],
)
def test_equals_the_parts_stepped_alone(names: list[str], steps: int) -> None:
    runs = _runs(names)
    joined = suites.make_each(names, seed=SEED)
    seeds = vector.spread(SEED, len(runs))
    parts = [
        (suites.make(name, rows.stop - rows.start, seed=seed), rows)
        for (name, rows), seed in zip(runs, seeds, strict=True)
    ]
    observations, infos = joined.reset()
    begun = [(*part.reset(), rows) for part, rows in parts]
    for part_observations, part_infos, rows in begun:
        np.testing.assert_array_equal(observations[rows], part_observations)
        np.testing.assert_array_equal(infos["lives"][rows], part_infos.get("lives", 0))
    assert isinstance(joined.single_action_space, spaces.Discrete)
    rng = np.random.default_rng(0)
    ends = []
    for step in range(steps):
        actions = rng.integers(joined.single_action_space.n, size=len(names))
        *arrays, infos = joined.step(actions)
        for part, rows in parts:
            *expected, part_infos = part.step(actions[rows])
            for array, part_array in zip(arrays, expected, strict=True):
                assert array.dtype == part_array.dtype
                np.testing.assert_array_equal(array[rows], part_array)
            np.testing.assert_array_equal(infos["lives"][rows], part_infos.get("lives", 0))
        if (arrays[2] | arrays[3]).any():
            ends.append(step)
    assert ends
    assert ends[0] < steps - 10  # a part was reset and then played on
    assert joined.metadata["autoreset_mode"] is AutoresetMode.NEXT_STEP


def test_all_are_sent_before_any_is_waited_for() -> None:
    log: list[str] = []
    env = MultiTaskEnv(
        {
            "a": Sending(small_tasks.Catch(1), "a", log),
            "b": Recorded(small_tasks.Catch(2), "b", log),
            "c": Sending(small_tasks.Catch(1), "c", log),
        }
    )
    env.reset(seed=0)
    with pytest.raises(ValueError, match=r"Actions must lie in .*got array"):
        env.step(np.array([0, 1, 3, 0]))
    assert log == []  # bad actions reach no part
    *_, infos = env.step(np.zeros(4, np.int64))
    assert log == ["a is sent", "c is sent", "a is received", "b steps", "c is received"]
    np.testing.assert_array_equal(infos["lives"], [0, 2, 2, 0])
    np.testing.assert_array_equal(infos["lost"], [0, 0, 0, 0])
    assert infos["lives"].dtype == infos["lost"].dtype == np.int32
    env.close()
    assert log[5:] == ["a closes", "b closes", "c closes"]


def test_atari_is_one_that_can_be_sent_to() -> None:
    assert isinstance(atari.Atari("pong", 1), vector.TwoPart)
    assert not isinstance(small_tasks.Catch(1), vector.TwoPart)


def test_tasks_that_differ_are_refused() -> None:
    tasks = {"x": small_tasks.Catch(1), "y": small_tasks.Catch(2), "z": small_tasks.Recall(1)}
    with pytest.raises(ValueError, match=r"'x' has .*\(3\), while 'z' has .*\(4\)\.$") as e:
        MultiTaskEnv(tasks)
    assert "\n" not in str(e.value)


class Dead(small_tasks.Catch):
    """Cannot be played on."""

    def step(self, actions: np.ndarray) -> vector.Step:
        raise CannotPlayError


def test_a_task_that_cannot_be_played_is_named() -> None:
    env = MultiTaskEnv({"a": small_tasks.Catch(1), "b": Dead(1), "c": small_tasks.Catch(1)})
    env.reset(seed=0)
    with pytest.raises(CannotPlayError) as error:
        env.step(np.zeros(3, np.int64))
    assert error.value.task == "b"


def test_seeds_differ_within_and_across_neighbouring_runs() -> None:
    seeds = np.concatenate([vector.spread(seed, 256) for seed in range(20)])
    assert len(set(seeds)) == len(seeds)
    assert seeds.min() >= 0
    assert seeds.max() < 2**31
    np.testing.assert_array_equal(vector.spread(3, 8), vector.spread(3, 256)[:8])
