"""What an environment that is made one at a time is given and shows, N at a time."""

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from environments import suites
from environments.copies import dead_simulators, made_singly
from environments.copies.leaves import UNCHECKED
from environments.copies.made_singly import LIVES

LOW, HIGH = np.array([0.7, -3.0]), np.array([1.1, 5.0])


class Echo(gymnasium.Env):
    """Shows the action it was given, and pays its sum."""

    observation_space = spaces.Box(-np.inf, np.inf, (2,), np.float64)

    def __init__(self, dtype: Any) -> None:
        self.action_space = spaces.Box(LOW.astype(dtype), HIGH.astype(dtype), dtype=dtype)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        return np.zeros(2), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        assert action.dtype == self.action_space.dtype
        assert self.action_space.contains(action)
        return action, float(action.sum()), False, False, {}


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_vectors_reach_each_copy_in_its_own_type_and_bounds(dtype: Any) -> None:
    env = made_singly.Copies(lambda: Echo(dtype), 3)
    space = env.single_action_space
    assert isinstance(space, spaces.Box)
    assert space.dtype == env.action_space.dtype == np.float32
    env.reset(seed=0)
    third = np.array([1, 0.25], np.float32)
    given = np.stack([space.low, space.high, third])  # [N, D], the bounds too
    assert env.action_space.contains(given)
    observations, rewards, *_ = env.step(given)
    np.testing.assert_allclose(observations, given, rtol=1e-3)
    np.testing.assert_allclose(rewards, given.sum(axis=1), rtol=1e-3)
    assert rewards.dtype == np.float32


class Odd(gymnasium.Env):
    """Shows, says and raises what it is told to."""

    def __init__(
        self,
        infos: Sequence[Any] = ({},),
        observations: Sequence[Any] = (0.5,),
        space: spaces.Space | None = None,
        length: int = 3,
    ) -> None:
        self.observation_space = space or spaces.Box(0, 1, (), np.float32)
        self.action_space = spaces.Discrete(2)
        self._infos, self._observations = itertools.cycle(infos), itertools.cycle(observations)
        self._length = length

    def reset(self, *, seed: int | None = None) -> tuple[Any, Any]:  # type: ignore[override]
        self._step = 0
        return next(self._observations), next(self._infos)

    def step(self, action: Any) -> tuple[Any, float, bool, bool, Any]:
        self._step += 1
        end = self._step == self._length
        return next(self._observations), 1.0, end, False, next(self._infos)

    def close(self) -> None:
        raise OSError("it was closed already")


@pytest.mark.parametrize(
    ("said", "lives"),
    [
        ([{"lost": "the game"}, {"lost": True}, {"lost": np.ones(3)}], 0),
        ([{"lives": 3}, {"lives": None}, {"lives": "nine"}, {"lives": {"left": 3}}], 0),
        ([{LIVES: None}, {LIVES: "nine"}, {LIVES: {"left": 3}}], 0),
        ([{LIVES: 300}, {LIVES: -1}, {LIVES: 2**70}, {LIVES: np.ones(2)}], 0),
        ([{LIVES: 3}, {LIVES: None}, {"lives": 9}, {LIVES: np.int64(3)}], 3),
        ([{"path": 1}, {"path": "a"}, {"path": None}, {"path": 2**70}, {"path": np.ones(2)}], 0),
        ([{"path": np.ones(2)}, {"path": np.ones(3)}, {"path": {"x": 1}}, {"path": {"x": {}}}], 0),
        ([{}, None, "nothing"], 0),
    ],
)
def test_of_what_an_environment_says_beside_it_only_its_lives_are_read(
    said: list[Any], lives: int
) -> None:
    env = made_singly.Copies(lambda: Odd(said), 2)
    all_infos = [env.reset(seed=0)[1]]
    for _ in range(11):
        *_, truncated, infos = env.step(np.zeros(2, np.int64))
        assert not truncated.any()
        all_infos.append(infos)
    for infos in all_infos:
        assert set(infos) <= {"lives", "_lives", "lost", "_lost"}
        assert not np.any(infos.get("lost", 0))
        np.testing.assert_array_equal(infos.get("lives", [0, 0]), [lives, lives])


def test_of_an_atari_game_that_gymnasium_makes_the_lives_are_known() -> None:
    _, infos = suites.make("gym:ALE/Breakout-v5", 2, seed=0).reset()
    np.testing.assert_array_equal(infos["lives"], [5, 5])


@pytest.mark.parametrize(
    ("space", "good", "bad", "told"),
    [
        (None, 0.5, np.nan, "an observation must be finite in float32, got nan"),
        (
            spaces.Dict(a=spaces.Box(0, 255, (1,), np.uint8), b=spaces.Discrete(2)),
            {"a": [1], "b": 0},
            {"a": [-1], "b": 0},
            "'a' of an observation must lie in Box(0, 255, (1,), uint8), got -1 at [0]",
        ),
    ],
)
def test_an_observation_that_is_not_in_its_space_is_told_and_loses_its_episode(
    space: spaces.Space | None, good: Any, bad: Any, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    sentences: list[str] = []
    monkeypatch.setattr(dead_simulators, "_told", set())
    monkeypatch.setattr(
        dead_simulators, "on_new_kind", lambda sentence, kind: sentences.append(sentence)
    )
    for is_checked in (True, False):
        given = iter([bad, good, good])

        def make(given: Iterator[Any] = given, is_checked: bool = is_checked) -> gymnasium.Env:
            env = Odd(observations=[good, good, next(given)], space=space)
            env.metadata = {UNCHECKED: not is_checked}
            return env

        env = made_singly.Copies(make, 2, what="environments of 'my.tasks:make'")
        env.reset()
        env.step(np.zeros(2, np.int64))
        *_, truncated, infos = env.step(np.zeros(2, np.int64))
        np.testing.assert_array_equal(truncated, [is_checked, False])
        np.testing.assert_array_equal(infos.get("lost", [0, 0]), [is_checked, 0])
    (sentence,) = sentences
    who = "One of the environments of 'my.tasks:make' raised ValueError: "
    assert sentence.startswith(f"{who}{told}, after step 2 of an episode (")


def test_copies_may_differ_in_bounds() -> None:
    bounds = itertools.count(1)

    def make() -> gymnasium.Env:
        high = next(bounds)
        env = Echo(np.float32)
        env.observation_space = spaces.Box(-high, high, (2,), np.float64)
        env.action_space = spaces.Box(-high, high, (2,), np.float32)
        return env

    env = made_singly.Copies(make, 3)
    env.reset()
    observations, *_ = env.step(np.full((3, 2), 2, np.float32))
    np.testing.assert_array_equal(observations, [[1, 1], [2, 2], [2, 2]])  # kept within its own


def test_one_that_takes_no_options_and_cannot_be_closed_is_played() -> None:
    env = made_singly.Copies(lambda: Odd(length=1), 2)
    env.reset(seed=0)
    for _ in range(4):
        *_, infos = env.step(np.zeros(2, np.int64))
        assert not np.any(infos.get("lost", 0))
    env.close()
