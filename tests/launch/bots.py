"""Policies and an environment that tests name by their import paths."""

import os
import pathlib
import signal
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

KILLED = "KILLED_AFTER"  # a variable: a file in which a bot counts, and after which number it dies


def catcher(observation: np.ndarray) -> int:
    """Plays catch without fault."""
    ball, paddle = observation[:-1].max(axis=0).argmax(), observation[-1].argmax()
    return 1 + int(np.sign(int(ball) - int(paddle)))


def first(observation: Any) -> int:
    """Takes the first action, legal or not."""
    del observation
    return 0


_RNG = np.random.default_rng(0)


def aimless(observation: np.ndarray) -> int:
    """Plays catch at random."""
    del observation
    return int(_RNG.integers(3))


def mortal(observation: np.ndarray) -> int:
    """Plays catch, and kills its process at a step that a variable of the environment says."""
    path, _, most = os.environ[KILLED].rpartition(":")
    steps = int(pathlib.Path(path).read_text()) + 1
    pathlib.Path(path).write_text(str(steps))
    if steps == int(most):
        os.kill(os.getpid(), signal.SIGKILL)
    return catcher(observation)


def lost(observation: np.ndarray) -> int:
    """Gives what is no action."""
    del observation
    return 3


class Odd(gymnasium.Env):
    """Shows a tuple, a text and a choice, acts by numbers from 5, and lasts six steps or nine."""

    observation_space = spaces.Dict(
        {
            "place": spaces.Tuple([spaces.Discrete(3), spaces.Box(-1, 1, (2,), np.float64)]),
            "text": spaces.Text(8, charset="ab "),
        }
    )
    action_space = spaces.Discrete(3, start=5)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self._left = 6
        return self._observe(), {}

    def step(self, action: int) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        assert 5 <= action < 8
        self._left -= 1
        return self._observe(), float(action), self._left == 0, self._left == -3, {}

    def _observe(self) -> Any:
        box = np.array([self._left / 9, -0.5])
        return {"place": (self._left % 3, box), "text": "ab a"[: 1 + self._left % 4]}


class Unlit(Odd):
    """Says that it draws itself, and cannot."""

    metadata = {"render_modes": ["rgb_array"]}  # noqa: RUF012

    def render(self) -> Any:
        raise OSError("no lamp")


def knowing(observation: Any, env: gymnasium.Env) -> int:
    """An action that the environment's state alone tells of."""
    assert isinstance(env, Odd)
    return abs(env._left) % 3
