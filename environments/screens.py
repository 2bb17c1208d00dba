"""One environment as people see it: a picture of every step, and the names of its actions."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np
from gymnasium import spaces
from gymnasium.vector import VectorEnv, VectorWrapper

from environments import atari, kinds, suites
from environments.copies.vector import ACTION_MASK, Begun, SeededVectorEnv, Step

# Atari and DMLab show 60 frames a second and take one action for four of them.
_FRAMES_PER_SECOND = {
    "atari": 15,
    "dmlab": 15,
    "catch": 4,
    "memory:recall": 4,
    "memory:cartpole": 50,
}


@dataclasses.dataclass(frozen=True)
class Screen:
    """An environment that can be watched."""

    # one copy, as `suites.make` makes it; `render()` returns its present picture as the only
    # element of a tuple, uint8 [H, W, 3]
    env: VectorEnv
    action_names: tuple[str, ...]  # a name for each action; none where an action is several numbers
    frames_per_second: int  # steps of a second, for people; real time where there is such a thing

    def picture(self) -> np.ndarray:
        """A copy of its present picture, since an environment may draw over it."""
        return np.array((self.env.render() or ())[0])

    def action_name(self, action: np.ndarray) -> str:
        """Names an action, which is a number or a vector [D]; a vector by its components."""
        if self.action_names:
            return self.action_names[int(action)]
        if action.dtype.kind in "iu":
            return " ".join(map(str, action))
        return " ".join(f"{component:+.2f}" for component in action)


def make(
    name: str, *, seed: int, full_action_space: bool = True, full_rendering: bool = False
) -> Screen:
    """Makes one environment that can be watched.

    Observations and rewards are those of `suites.make` with the same arguments. A picture
    comes from the emulator's own screen, MuJoCo's, or an environment's `render()` in the mode
    `rgb_array`, where there is one; else the observation is drawn.

    Args:
      name: of one environment.
      seed: this and the others are as for `suites.make`.

    Raises:
      ValueError: as `suites.make` and `check`.
    """
    task = suites.check_single(name)
    check(name)
    options = kinds.Options(full_action_space, full_rendering, drawing=True)
    env: VectorEnv
    if task.kind == "atari":
        env = SeededVectorEnv(_Twins(task.rest, full_action_space), seed)
    else:
        env = _Drawn(SeededVectorEnv(kinds.of(task).make(task, 1, options), seed))
    speed = _FRAMES_PER_SECOND.get(name) or _FRAMES_PER_SECOND.get(task.kind)
    return Screen(env, _action_names(env), speed or int(env.metadata.get("render_fps") or 30))


def check(name: str) -> None:
    """Refuses an environment that nobody can watch here, for want of a renderer.

    Args:
      name: of one environment.

    Raises:
      ValueError: a sentence with the packages to install.
    """
    task = suites.parse(name)[0]
    kinds.of(task).check_drawing(task)


class _Twins(VectorWrapper):
    """A game that is played twice, alike: as the agent sees it and, for `render`, as people do.

    The emulator preprocesses frames where they are made, so one copy of it shows either the one or
    the other. The no-ops at the start, the only chance in a game, follow from the seed.
    """

    def __init__(self, game: str, full_action_space: bool) -> None:
        super().__init__(atari.Atari(game, 1, full_action_space=full_action_space))
        self._twin = atari.Atari(game, 1, full_action_space=full_action_space, for_people=True)
        self._picture: np.ndarray | None = None

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Begun:
        self._picture = self._twin.reset(seed=seed, options=options)[0][0]
        return self.env.reset(seed=seed, options=options)

    def step(self, actions: np.ndarray) -> Step:
        self._picture = self._twin.step(actions)[0][0]
        return self.env.step(actions)

    def render(self) -> tuple[Any, ...] | None:
        return (self._picture,)


class _Drawn(VectorWrapper):
    """Draws the observation where the environment gives no picture."""

    _observation: Any = None

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Begun:
        self._observation, infos = self.env.reset(seed=seed, options=options)
        return self._observation, infos

    def step(self, actions: np.ndarray) -> Step:
        self._observation, *outcome = self.env.step(actions)
        return self._observation, *outcome

    def render(self) -> tuple[Any, ...] | None:
        rendered = self.env.render() if self.env.render_mode == "rgb_array" else None
        picture: Any = rendered[0] if rendered else None
        is_array = isinstance(picture, np.ndarray)
        if is_array and picture.dtype == np.uint8 and picture.ndim == 3:
            return rendered if picture.shape[-1] in (3, 4) else (drawn(picture),)
        parts = self._observation
        shown = parts if isinstance(parts, Mapping) else {"": parts}
        # The part most like a picture; a dictionary is ordered by name.
        rows = [part[0] for name, part in shown.items() if name != ACTION_MASK]
        return (drawn(max(rows, key=np.ndim)),)


def drawn(observation: np.ndarray) -> np.ndarray:
    """A picture of one observation.

    Args:
      observation: an image [H, W] or [H, W, C], bytes or fractions, whose last three channels are
        taken for colours where there are so many, else the first for grey; or a vector [D], which
        becomes a row of cells: green where a number is above zero, red where it is below, black at
        zero.

    Returns:
      uint8 [H, W, 3], or [1, D, 3].
    """
    if observation.ndim > 1:
        image = observation if observation.ndim == 3 else observation[..., np.newaxis]
        if image.dtype != np.uint8:
            image = np.round(255 * np.clip(image, 0, 1)).astype(np.uint8)
        return image[..., -3:] if image.shape[-1] > 2 else np.repeat(image[..., :1], 3, axis=-1)
    observation = observation / 255 if observation.dtype == np.uint8 else observation
    size = np.abs(np.tanh(observation))
    cells = np.stack([size * (observation < 0), size * (observation > 0), 0 * size], axis=-1)
    return np.round(255 * cells).astype(np.uint8)[np.newaxis]


def _action_names(env: VectorEnv) -> tuple[str, ...]:
    """The names that the environment inside all wrappers gives them, or else their numbers."""
    while not hasattr(env, "action_names") and isinstance(env, VectorWrapper):
        env = env.env
    space = env.single_action_space
    count = int(space.n) if isinstance(space, spaces.Discrete) else 0
    names: tuple[str, ...] = getattr(env, "action_names", tuple(map(str, range(count))))
    return names
