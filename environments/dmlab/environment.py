"""DeepMind Lab, where its Python module is installed: 3-D tasks in the first person."""

import functools
import importlib.util
import re
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from environments import kinds, scores
from environments.copies import conversion, vector
from environments.copies.dead_simulators import Deaths
from environments.copies.vector import Begun, Step
from environments.dmlab import process
from environments.dmlab.engine import Engine, Episodes

HEIGHT, WIDTH = 72, 96

FULL_ACTIONS = (
    *("forward", "backward", "strafe left", "strafe right"),
    *("look left 10", "look right 10", "look left 60", "look right 60"),
    *("look down 10", "look up 10", "look left 10 forward", "look right 10 forward"),
    *("look left 60 forward", "look right 60 forward", "fire"),
)
"""The 15 of PopArt-IMPALA and R2D2 (Hessel et al. 2018, Appendix, Table 2), turns in pixels."""

IMPALA_ACTIONS = (
    *("forward", "backward", "strafe left", "strafe right", "look left 20", "look right 20"),
    *("look left 20 forward", "look right 20 forward", "fire"),
)
"""The nine of IMPALA (Espeholt et al. 2018, Table C.2)."""

_NATIVE = {  # word -> index and sign in a native action; no action jumps or crouches
    **{"look left": (0, -1), "look right": (0, 1), "look up": (1, -1), "look down": (1, 1)},
    **{"strafe left": (2, -1), "strafe right": (2, 1), "backward": (3, -1), "forward": (3, 1)},
    "fire": (4, 1),
}

PATIENCE = 300.0  # seconds; a reset that compiles a map took 33 to 48

CLASSICS = (
    *("lt_chasm", "lt_hallway_slope", "lt_horseshoe_color", "lt_space_bounce_hard"),
    *(f"nav_maze_random_goal_0{number}" for number in (1, 2, 3)),
    *(f"nav_maze_static_0{number}" for number in (1, 2, 3)),
    *("seekavoid_arena_01", "stairway_to_melon"),
)
"""The levels at the root of the engine's own; DMLab-30's are in a folder below."""


def installed() -> bool:
    """Returns whether the Python module `deepmind_lab` is installed, without importing it."""
    return importlib.util.find_spec("deepmind_lab") is not None


def check(level: str) -> None:
    """Refuses every level where the engine is missing.

    Raises:
      ValueError: a sentence that says where to get the engine.
    """
    if not installed():
        raise ValueError(
            f"'dmlab:{level}' needs DeepMind Lab's Python module, deepmind_lab, which is not "
            "installed here; docs/dmlab.md says how to get it."
        )


class DMLab(VectorEnv):
    """N copies of one level, each in a process of its own, started by the first `reset`.

    One step is four frames of the same action. Observations are a dictionary: `image`, uint8
    [N, 72, 96, 3], and `instruction`, int32 [N, 16], the ids of its words and then zeros (see
    `conversion.word_ids`); only the four language levels say anything. Rewards are raw.

    The engine does not tell a time limit from an end, so every episode terminates; it shows nothing
    after the last step, so that step's observation repeats the one before.

    An engine that ends by itself in mid-episode truncates the episode, with the observation from
    before and no reward, and the next step begins an episode in a new one. `infos["lost"]`, int32
    [N], counts the engines that were lost in this step. `reset` and `step` raise CannotPlayError
    where one copy loses several in a row without a step in between.

    Args:
      level: its name, without a folder.
      num_envs: N, the number of copies.
      full_action_space: the 15 actions of R2D2 and PopArt-IMPALA, or IMPALA's nine.
      cache: the folder of compiled maps; None for the user's own.
      patience: seconds after which a silent engine is given up.

    Attributes:
      action_names: what each action does, in words.
    """

    def __init__(
        self,
        level: str,
        num_envs: int,
        *,
        full_action_space: bool = True,
        cache: Path | None = None,
        patience: float = PATIENCE,
    ) -> None:
        self.metadata = {"autoreset_mode": AutoresetMode.NEXT_STEP}
        self.num_envs = num_envs
        self.single_observation_space = spaces.Dict(
            image=spaces.Box(0, 255, (HEIGHT, WIDTH, 3), np.uint8),
            instruction=conversion.word_space(conversion.MAX_WORDS),
        )
        self.action_names = FULL_ACTIONS if full_action_space else IMPALA_ACTIONS
        self._actions = [native(action) for action in self.action_names]
        self.single_action_space = spaces.Discrete(len(self._actions))
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._start = functools.partial(
            Engine,
            level if level in CLASSICS else f"contributed/dmlab30/{level}",
            _config(level),
            cache or process.default_cache(),
        )
        self._deaths = Deaths(f"engines of level {level!r}")
        self._patience = patience
        self._copies: list[Episodes] = []
        self._ended = np.zeros(num_envs, bool)  # [N]
        self._lost_before = np.zeros(num_envs, np.int32)  # [N]

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Begun:
        """Begins an episode in every copy.

        A seed starts new engines, since only the first episode of each can be repeated: it is the
        same for the same seed and actions, while later ones only have the same seeds.
        """
        super().reset(seed=seed, options=options)
        if seed is not None or not self._copies:
            self.close_extras()
            seeds = vector.spread(int(self.np_random.integers(2**31)), self.num_envs)
            self._copies = [
                Episodes(self._start, self._deaths, patience=self._patience, seed=int(own))
                for own in seeds
            ]
            self._lost_before = np.zeros(self.num_envs, np.int32)
        for copy in self._copies:
            copy.begin()
        for copy in self._copies:
            copy.first_frame()
        self._ended = np.zeros(self.num_envs, bool)
        return self._observe(), self._infos()

    def step(self, actions: np.ndarray) -> Step:
        self.send(actions)
        return self.recv()

    def send(self, actions: np.ndarray) -> None:
        """Begins a step, which goes on in the engines until `recv` fetches its result."""
        if not self.action_space.contains(actions):
            raise ValueError(f"Actions must lie in {self.action_space}, got {actions!r}.")
        for copy, ended, action in zip(self._copies, self._ended, actions, strict=True):
            if ended:
                copy.begin()
            else:
                copy.step(self._actions[action])

    def recv(self) -> Step:
        """Waits for the step that `send` began and returns what `step` does."""
        rewards = np.zeros(self.num_envs, np.float32)
        terminated, truncated = np.zeros((2, self.num_envs), bool)
        for row, copy in enumerate(self._copies):
            if self._ended[row]:
                copy.first_frame()
            else:
                rewards[row], terminated[row], truncated[row] = copy.outcome()
        self._ended = terminated | truncated
        return self._observe(), rewards, terminated, truncated, self._infos()

    def _observe(self) -> dict[str, np.ndarray]:
        images, said = zip(*(copy.frame for copy in self._copies), strict=True)
        return {
            "image": np.stack(images),  # [N, 72, 96, 3]
            "instruction": np.stack([conversion.word_ids(text) for text in said]),  # [N, 16]
        }

    def _infos(self) -> dict[str, Any]:
        lost = np.array([copy.lost for copy in self._copies], np.int32)
        before, self._lost_before = self._lost_before, lost
        return {"lost": lost - before}

    def close_extras(self, **kwargs: Any) -> None:
        for copy in self._copies:
            copy.close()


def native(action: str) -> tuple[int, ...]:
    """An action in the engine's terms: `look left 20 forward` as (-20, 0, 0, 1, 0, 0, 0).

    The seven are look right and down (pixels per frame), strafe right, move forward, fire, jump and
    crouch.
    """
    values = [0] * 7
    for words, (index, sign) in _NATIVE.items():
        if found := re.search(rf"{words}( \d+)?", action):
            values[index] = sign * int(found[1] or 1)
    return tuple(values)


def _config(level: str) -> dict[str, str]:
    size = {"width": str(WIDTH), "height": str(HEIGHT)}
    return size | ({"allowHoldOutLevels": "true"} if level.endswith("_test") else {})


KINDS = {
    "dmlab": kinds.Kind(
        form="dmlab:<level>",
        make=lambda task, num_envs, options: DMLab(
            task.rest, num_envs, full_action_space=options.full_action_space
        ),
        tasks=lambda: sorted({*CLASSICS, *scores.DMLAB30_LEVELS}),
        check=lambda task: check(task.rest),
        frames_per_step=process.FRAMES_PER_STEP,
        images=lambda task: [(HEIGHT, WIDTH, 3)],
    )
}
