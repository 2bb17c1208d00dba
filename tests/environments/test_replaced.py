"""An environment that raises loses its episode, and no more."""

import re
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from environments.copies import dead_simulators
from environments.copies.dead_simulators import FIRST_EPISODES, MAX_DEATHS, CannotPlayError
from environments.copies.made_singly import Copies


class Counting(gymnasium.Env):
    """Shows how many steps it made; raises in step `fails`, or in its reset."""

    observation_space = spaces.Box(0.0, 100.0, (1,), np.float32)
    action_space = spaces.Discrete(2)
    error: BaseException = OSError("the simulator has crashed")

    def __init__(self, fails: int | str | None, length: int = 5) -> None:
        self._fails, self._length, self._steps = fails, length, 0
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
        return np.array([self._steps], np.float32), 1.0, self._steps == self._length, False, {}

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


ACTIONS = np.zeros(2, np.int64)


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


def test_a_step_in_between_begins_the_count_anew() -> None:
    copies = Copies(Maker(*[2] * 10), 1)  # each makes one step
    copies.reset()
    lost = 0
    for _ in range(24):
        *_, infos = copies.step(ACTIONS[:1])
        lost += int(np.sum(infos.get("lost", 0)))
    assert lost == 8


@pytest.mark.parametrize(
    ("fails", "given_up"),
    [
        ([2] * 50, FIRST_EPISODES),
        ([2] * (FIRST_EPISODES - 2) + [None] + [2] * 50, None),  # one of them ends by itself
    ],
)
def test_a_task_is_given_up_of_which_the_first_episodes_are_all_lost(
    fails: list[int | None], given_up: int | None
) -> None:
    """Of both copies together, each of which makes a step before it raises."""
    maker, said = Maker(*fails), None
    copies = Copies(maker, 2)
    copies.reset()
    try:
        for _ in range(100):
            copies.step(ACTIONS)
    except CannotPlayError as error:
        said = str(error)
    if given_up is None:
        assert said is None
        return
    assert len(maker.made) == given_up  # the last to be lost was not replaced
    assert said is not None
    assert said.startswith(
        f"The first {FIRST_EPISODES} episodes were all lost, with environments. The last one "
        f"raised OSError: the simulator has crashed ({__file__}:"
    )


def test_the_first_loss_of_each_kind_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    monkeypatch.setattr(
        dead_simulators, "on_new_kind", lambda sentence, kind: told.append(sentence)
    )
    monkeypatch.setattr(dead_simulators, "_told", set())
    copies = Copies(Maker(2, 3, 2, "reset", 3), 2)
    copies.reset()
    for _ in range(12):
        copies.step(ACTIONS)
    step, reset = told
    assert step.startswith(
        f"One of the environments raised OSError: the simulator has crashed ({__file__}:"
    )
    assert "the simulator does not answer" in reset


def test_nothing_is_lost_of_one_that_does_not_raise() -> None:
    copies = Copies(Maker(), 2)
    copies.reset()
    for _ in range(12):
        *_, infos = copies.step(ACTIONS)
        assert not np.any(infos.get("lost", 0))
