"""N copies of an environment: each one's actions and observations; one that raises is replaced."""

import itertools
import re
from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from environments import suites
from environments.copies import dead_simulators
from environments.copies.dead_simulators import FIRST_EPISODES, MAX_DEATHS, CannotPlayError
from environments.copies.leaves import UNCHECKED
from environments.copies.made_singly import LIVES, Copies

LOW, HIGH = np.array([0.7, -3.0]), np.array([1.1, 5.0])
ACTIONS = np.zeros(2, np.int64)


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
    env = Copies(lambda: Echo(dtype), 3)
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


def test_copies_may_differ_in_bounds_alone() -> None:
    numbers = itertools.count(1)

    def make(size: int = 0) -> gymnasium.Env:
        number = next(numbers)
        env = Echo(np.float32)
        env.observation_space = spaces.Box(-number, number, (size * number or 2,), np.float64)
        env.action_space = spaces.Box(-number, number, (2,), np.float32)
        return env

    with pytest.raises(ValueError, match=r"in every copy, but for bounds, got .* \(1,\).* \(2,\)"):
        Copies(lambda: make(size=1), 2)
    numbers = itertools.count(1)
    env = Copies(make, 3)
    env.reset()
    observations, *_ = env.step(np.full((3, 2), 2, np.float32))
    np.testing.assert_array_equal(observations, [[1, 1], [2, 2], [2, 2]])  # kept within its own


class Odd(gymnasium.Env):
    """Shows and says what it is told to; takes no options, and raises when it is closed."""

    def __init__(
        self,
        infos: Sequence[Any] = ({},),
        observations: Sequence[Any] = (0.5,),
        space: spaces.Space | None = None,
    ) -> None:
        self.observation_space = space or spaces.Box(0, 1, (), np.float32)
        self.action_space = spaces.Discrete(2)
        self._infos, self._observations = itertools.cycle(infos), itertools.cycle(observations)

    def reset(self, *, seed: int | None = None) -> tuple[Any, Any]:  # type: ignore[override]
        self._step = 0
        return next(self._observations), next(self._infos)

    def step(self, action: Any) -> tuple[Any, float, bool, bool, Any]:
        self._step += 1
        return next(self._observations), 1.0, self._step == 3, False, next(self._infos)

    def close(self) -> None:
        raise OSError("it was closed already")


@pytest.mark.parametrize(
    ("said", "lives"),
    [
        ([{"lost": "the game"}, {"lost": True}, {"lost": np.ones(3)}], 0),
        ([{"lives": 3}, {"lives": None}, {"lives": {"left": 3}}], 0),
        ([{LIVES: None}, {LIVES: "nine"}, {LIVES: 300}, {LIVES: -1}, {LIVES: np.ones(2)}], 0),
        ([{LIVES: 3}, {LIVES: None}, {"lives": 9}, {LIVES: np.int64(3)}], 3),
        ([{"path": np.ones(2)}, {"path": np.ones(3)}, {"path": {"x": 1}}, {"path": {"x": {}}}], 0),
        ([{}, None, "nothing"], 0),
    ],
)
def test_of_what_an_environment_says_beside_it_only_its_lives_are_read(
    said: list[Any], lives: int
) -> None:
    env = Copies(lambda: Odd(said), 2)
    all_infos = [env.reset(seed=0)[1]]
    for _ in range(11):
        *_, truncated, infos = env.step(ACTIONS)
        assert not truncated.any()
        all_infos.append(infos)
    env.close()
    for infos in all_infos:
        assert set(infos) <= {"lives", "_lives", "lost", "_lost"}
        assert not np.any(infos.get("lost", 0))
        np.testing.assert_array_equal(infos.get("lives", [0, 0]), [lives, lives])


def test_of_an_atari_game_that_gymnasium_makes_the_lives_are_known() -> None:
    _, infos = suites.make("gym:ALE/Breakout-v5", 2, seed=0).reset()
    np.testing.assert_array_equal(infos["lives"], [5, 5])


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The sentences about deaths of new kinds."""
    sentences: list[str] = []
    monkeypatch.setattr(dead_simulators, "_told", set())
    monkeypatch.setattr(dead_simulators, "on_new_kind", lambda said, kind: sentences.append(said))
    return sentences


@pytest.mark.parametrize("is_checked", [True, False])
@pytest.mark.parametrize(
    ("space", "good", "bad", "said"),
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
    space: spaces.Space | None, good: Any, bad: Any, said: str, is_checked: bool, told: list[str]
) -> None:
    given = iter([bad, good, good])

    def make() -> gymnasium.Env:
        env = Odd(observations=[good, good, next(given)], space=space)
        env.metadata = {UNCHECKED: not is_checked}
        return env

    env = Copies(make, 2, what="environments of 'my.tasks:make'")
    env.reset()
    env.step(ACTIONS)
    *_, truncated, infos = env.step(ACTIONS)
    np.testing.assert_array_equal(truncated, [is_checked, False])
    np.testing.assert_array_equal(infos.get("lost", [0, 0]), [is_checked, 0])
    who = "One of the environments of 'my.tasks:make' raised ValueError: "
    assert len(told) == is_checked
    assert all(each.startswith(f"{who}{said}, after step 2 of an episode (") for each in told)


class Same(Odd):
    """Gives one array at each step, in which the second step has a number that is none."""

    def __init__(self) -> None:
        super().__init__([{LIVES: 3}], space=spaces.Box(0, 1, (20, 20), np.float32))
        self._array = np.zeros((20, 20), np.float32)
        self._observations = itertools.cycle([self._array])

    def step(self, action: Any) -> tuple[Any, float, bool, bool, Any]:
        self._array += 0.25 if self._step == 0 else np.nan
        return super().step(action)


def test_a_lost_episode_ends_with_the_observation_and_the_lives_of_the_step_before() -> None:
    env = Copies(Same, 2)
    env.reset()
    env.step(ACTIONS)
    observations, _, _, truncated, infos = env.step(ACTIONS)
    np.testing.assert_array_equal(observations, np.full(observations.shape, 0.25))
    assert truncated.all()
    assert infos["lost"].tolist() == [1, 1]
    assert infos["lives"].tolist() == [3, 3]


class Counting(gymnasium.Env):
    """Shows how many steps it made; raises in step `fails`, or in its reset."""

    observation_space = spaces.Box(0.0, 100.0, (1,), np.float32)
    action_space = spaces.Discrete(2)
    error: BaseException = OSError("the simulator has crashed")

    def __init__(self, fails: int | str | None) -> None:
        self._fails, self._steps = fails, 0
        self.closed = False

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        if self._fails == "reset":
            raise OSError("the simulator does not answer")
        self._steps = 0
        return np.array([0.0], np.float32), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self._steps += 1
        if self._steps == self._fails:
            raise self.error
        return np.array([self._steps], np.float32), 1.0, self._steps == 5, False, {}

    def close(self) -> None:
        self.closed = True


class Maker:
    """Makes environments that fail as a list says, in order; then such as do not."""

    def __init__(self, *fails: int | str | None) -> None:
        self.made: list[Counting] = []
        self._fails = list(fails)

    def __call__(self) -> Counting:
        fails = self._fails.pop(0) if self._fails else None
        if fails == "make":
            raise OSError("there is no licence")
        self.made.append(Counting(fails))
        return self.made[-1]


@pytest.mark.parametrize("error", [Counting.error, SystemExit(0)])
def test_a_step_that_raises_truncates_and_a_new_one_begins(
    error: BaseException, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Counting, "error", error)
    maker = Maker(3, None)  # the first of two copies
    copies = Copies(maker, 2)
    copies.reset(seed=1)
    seen, lost, ends = [], [], []
    for _ in range(5):
        observations, rewards, terminated, truncated, infos = copies.step(ACTIONS)
        seen.append(observations[:, 0].tolist())
        lost.append(np.asarray(infos.get("lost", [0, 0])).tolist())
        ends.append((terminated.tolist(), truncated.tolist(), rewards.tolist()))
    assert seen == [[1, 1], [2, 2], [2, 3], [0, 4], [1, 5]]
    assert lost == [[0, 0], [0, 0], [1, 0], [0, 0], [0, 0]]
    assert ends[2] == ([False, False], [True, False], [0.0, 1.0])
    assert [each.closed for each in maker.made] == [True, False, False]


@pytest.mark.parametrize("then", ["reset", "make"])
def test_one_that_cannot_begin_is_replaced_too(then: str) -> None:
    copies = Copies(Maker(1, None, then), 2)  # the third environment replaces the first
    copies.reset()
    copies.step(ACTIONS)
    observations, *_, infos = copies.step(ACTIONS)
    assert observations[:, 0].tolist() == [0, 2]
    assert infos["lost"].tolist() == [1, 0]


def test_one_that_is_none_of_the_copies_is_closed_and_replaced() -> None:
    maker = Maker(1)

    def make() -> gymnasium.Env:
        env = maker()
        if len(maker.made) == 3:  # it replaces the first
            env.observation_space = spaces.Box(0.0, 100.0, (7,), np.float32)
        return env

    copies = Copies(make, 2)
    copies.reset()
    copies.step(ACTIONS)
    *_, infos = copies.step(ACTIONS)
    assert infos["lost"].tolist() == [1, 0]
    assert [each.closed for each in maker.made] == [True, False, True, False]


def test_what_fails_at_once_again_and_again_is_an_error() -> None:
    copies = Copies(Maker(1, None, *["reset"] * MAX_DEATHS), 2)
    copies.reset()
    copies.step(ACTIONS)
    with pytest.raises(CannotPlayError) as error:
        copies.step(ACTIONS)
    assert re.fullmatch(
        "3 environments in a row were lost before a step was made. The last one raised OSError: "
        rf"the simulator does not answer \({re.escape(__file__)}:\d+, in reset\)",
        str(error.value),
    )
    assert isinstance(error.value.__cause__, OSError)


@pytest.mark.parametrize(
    ("fails", "given_up"),
    [
        ([2] * 50, True),
        ([2] * (FIRST_EPISODES - 2) + [None] + [2] * 50, False),  # one of them ends by itself
    ],
)
def test_a_task_is_given_up_of_which_the_first_episodes_are_all_lost(
    fails: list[int | None], given_up: bool
) -> None:
    """Both copies count together; each makes a step before it raises."""
    maker, said = Maker(*fails), ""
    copies = Copies(maker, 2)
    copies.reset()
    try:
        for _ in range(100):
            copies.step(ACTIONS)
    except CannotPlayError as error:
        said = str(error)
    assert said.startswith(
        f"The first {FIRST_EPISODES} episodes were all lost, with environments. The last one "
        f"raised OSError: the simulator has crashed ({__file__}:"
        if given_up
        else ""
    )
    assert (len(maker.made) == FIRST_EPISODES) == bool(said) == given_up  # no more is made


def test_the_first_death_of_each_kind_is_told(told: list[str]) -> None:
    copies = Copies(Maker(2, 3, 2, "reset", 3), 2)
    copies.reset()
    for _ in range(12):
        copies.step(ACTIONS)
    step, reset = told
    assert step.startswith(
        f"One of the environments raised OSError: the simulator has crashed ({__file__}:"
    )
    assert "the simulator does not answer" in reset
