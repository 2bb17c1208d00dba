"""DeepMind Control and the Real-World RL suite, where their packages are installed.

A task shows one float32 vector, the numbers of its observation in the order of their sorted names,
or a picture of itself. An action is a vector within the task's own bounds, which are not -1 and 1
everywhere. Rewards are in [0, 1]. An episode is truncated after 1,000 steps.
"""

import contextlib
import importlib
import importlib.util
from collections.abc import Iterator
from typing import Any

import numpy as np
from absl import logging
from gymnasium import spaces

from environments import kinds
from environments.control import renderer, tasks
from environments.copies.dead_simulators import first_line
from environments.copies.from_dm import FromDm
from environments.copies.made_singly import Copies
from recurrent_replay import addition

HEIGHT = WIDTH = 84  # of an agent's picture
FILM_SIZE = (240, 320)  # height and width of people's picture
_NEEDS_RENDERER = ("quadruped/escape",)  # hands its terrain to one at every reset
_CAMERAS = {"quadruped": 2}  # the first one stands too far away


def check(kind: str, task: str) -> None:
    """Refuses a task that this machine cannot make.

    Nothing is drawn in this process. The packages are imported in it, so that its forks share them.

    Args:
      kind: `control`, `control-pixels` or `rwrl`.
      task: one that `tasks.TASKS` lists for it.

    Raises:
      ValueError: a sentence with the package to install, or with an import's exception.
    """
    name = f"{kind}:{task}"
    if not _is_installed("dm_control"):
        raise ValueError(
            f"{name!r} needs dm_control, which is not installed here: "
            f"`{addition('control')}` does it."
        )
    if kind == "rwrl" and not _is_installed("realworldrl_suite"):
        raise ValueError(
            f"{name!r} needs realworldrl_suite, which is not installed here and in no package "
            "index: docs/control.md has the line that installs it."
        )
    if kind == "control-pixels" or task in _NEEDS_RENDERER:
        renderer.check(name)
    try:
        _suite(kind)
    except Exception as error:  # a library of the system is missing, say
        raise ValueError(
            f"{name!r} cannot be played, since importing it raises {first_line(error)}"
        ) from error


def make(
    kind: str, task: str, num_envs: int, *, full_rendering: bool = False, drawing: bool = False
) -> Copies:
    """Makes N copies, stepped one after the other.

    Args:
      kind: as for `check`.
      task: as for `check`, which accepts it.
      num_envs: N.
      full_rendering: whether an agent's pictures have shadows and smooth edges.
      drawing: whether `render()` will be called, which takes a renderer.
    """

    def copy() -> Task:
        if kind == "rwrl":
            return RealWorldTask(task, drawing=drawing)
        if kind == "control-pixels":
            return PixelTask(task, drawing=drawing, full_rendering=full_rendering)
        return Task(task, drawing=drawing)

    return Copies(copy, num_envs, what=f"environments of {f'{kind}:{task}'!r}")


class Task(FromDm):
    """A task of the DeepMind Control Suite, from features.

    A seed begins the first episode that a new task would have. `render()` gives uint8
    [240, 320, 3].

    Args:
      task: its name, for example `cartpole/swingup`.
      drawing: whether `render()` will be called.
    """

    def __init__(self, task: str, *, drawing: bool = False) -> None:
        self._task = task
        self._has_begun = False
        self._camera = _CAMERAS.get(task.partition("/")[0], 0)
        if drawing:
            renderer.use()
        super().__init__(self._load())
        self.render_mode = "rgb_array" if drawing else None
        step = self._environment.control_timestep()  # seconds
        self.metadata = {"render_modes": ["rgb_array"], "render_fps": round(1 / step)}

    def _load(self) -> Any:
        return _suite("control").load(*self._task.split("/"))

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        if seed is not None:
            if self._has_begun:
                self._environment.close()
                self._environment = self._load()
            self._environment.task.random.seed(seed)
        if self._task in _NEEDS_RENDERER:
            renderer.use()
        self._has_begun = True
        return super().reset()

    def render(self) -> np.ndarray:
        return self._draw(*FILM_SIZE)

    def _draw(self, height: int, width: int, **how: Any) -> np.ndarray:
        picture: np.ndarray = self._environment.physics.render(
            height, width, camera_id=self._camera, **how
        )
        return picture


class PixelTask(Task):
    """A task of the DeepMind Control Suite, from pictures: uint8 [84, 84, 3].

    Args:
      task: as for `Task`.
      drawing: as for `Task`.
      full_rendering: whether they have shadows and smooth edges.
    """

    def __init__(self, task: str, *, drawing: bool = False, full_rendering: bool = False) -> None:
        self._how = {} if full_rendering else {"render_flag_overrides": {"shadow": False}}
        self._is_full = full_rendering
        super().__init__(task, drawing=drawing)
        self.observation_space = spaces.Box(0, 255, (HEIGHT, WIDTH, 3), np.uint8)

    def _load(self) -> Any:
        environment = super()._load()
        if not self._is_full:
            environment.physics.model.vis.quality.offsamples = 0
        return environment

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        renderer.use()
        super().reset(seed=seed)
        return self._draw(HEIGHT, WIDTH, **self._how), {}

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        _, reward, terminated, truncated, infos = super().step(action)
        return self._draw(HEIGHT, WIDTH, **self._how), reward, terminated, truncated, infos


class RealWorldTask(Task):
    """A task of the Real-World RL suite, from features.

    The suite draws its noise from numpy's common stream: here each task has one of its own.

    Args:
      task: its name, for example `cartpole/swingup/medium`.
      drawing: as for `Task`.
    """

    def __init__(self, task: str, *, drawing: bool = False) -> None:
        self._chance = np.random.RandomState().get_state()
        with self._own_chance():
            super().__init__(task, drawing=drawing)

    def _load(self) -> Any:
        domain, task, level = self._task.split("/")
        challenge = None if level == "none" else level
        return _suite("rwrl").load(domain, f"realworld_{task}", combined_challenge=challenge)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        if seed is not None:
            self._chance = np.random.RandomState(seed).get_state()
            self._has_begun = True  # the call for its spec stepped it: its delays hold that already
        with self._own_chance():
            return super().reset(seed=seed)

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        with self._own_chance():
            return super().step(action)

    @contextlib.contextmanager
    def _own_chance(self) -> Iterator[None]:
        others = np.random.get_state()
        np.random.set_state(self._chance)
        try:
            yield
        finally:
            self._chance = np.random.get_state()
            np.random.set_state(others)


def _suite(kind: str) -> Any:
    """The module that makes tasks of a kind, imported without a renderer and without a greeting."""
    module = "realworldrl_suite.environments" if kind == "rwrl" else "dm_control.suite"
    before = logging.get_verbosity()
    logging.set_verbosity(min(before, logging.WARNING))
    try:
        with renderer.without():
            return importlib.import_module(module)
    finally:
        logging.set_verbosity(before)


def _is_installed(package: str) -> bool:
    """Returns whether a package is installed, without importing it."""
    return importlib.util.find_spec(package) is not None


def _kind(word: str, form: str, *images: kinds.Shape) -> kinds.Kind:
    def make_task(task: kinds.Task, num_envs: int, options: kinds.Options) -> Copies:
        drawing, full = options.drawing, options.full_rendering
        return make(word, task.rest, num_envs, full_rendering=full, drawing=drawing)

    return kinds.Kind(
        form=f"{word}:{form}",
        make=make_task,
        tasks=lambda: tasks.TASKS[word],
        advice=lambda task: tasks.advice(word, task.rest, form),
        check=lambda task: check(word, task.rest),
        check_drawing=lambda task: renderer.check(task.name),
        # Known by the name, so that no engine has to be there to ask.
        is_continuous=lambda task: True,
        images=lambda task: list(images),
    )


KINDS = {
    "control": _kind("control", "<domain>/<task>"),
    "control-pixels": _kind("control-pixels", "<domain>/<task>", (HEIGHT, WIDTH, 3)),
    "rwrl": _kind("rwrl", "<domain>/<task>/<level>"),
}
