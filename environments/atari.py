"""Atari 2600 games with the settings of the R2D2 paper."""

import os
import re
from typing import Any

import numpy as np
from ale_py import Action, roms
from ale_py.vector_env import AtariVectorEnv
from gymnasium import spaces
from gymnasium.vector import VectorWrapper
from gymnasium.vector.utils import batch_space

from environments import kinds
from environments.copies.vector import Begun, Step, spread

HEIGHT = WIDTH = 84
SCREEN = (210, 160)  # height and width of a television's picture
FRAMES_PER_STEP = 4
MAX_FRAMES_PER_EPISODE = 108_000
"""Emulator frames, half an hour of play. The no-op frames at an episode's start do not count."""

_WORD = re.compile("noop|fire|up|down|left|right")  # of an action's name, as in UPRIGHTFIRE
_FOR_TWO_PLAYERS = {"combat", "joust", "maze_craze", "warlords"}


def games() -> list[str]:
    """The names of the games that can be played, in snake_case, sorted."""
    # The emulator ships these four too, but ends the process when it is to load one.
    return sorted(set(roms.get_all_rom_ids()) - _FOR_TWO_PLAYERS)


def _without_illegal_fire(legal: list[Action]) -> np.ndarray:
    """Maps each of the 18 actions to its index in a game's legal ones, int64 [18].

    In Skiing and Lost Luggage the emulator forbids the fire button. There the actions that press
    it become the same ones without it, so that one network output fits every game.
    """
    names = [action.name for action in legal]
    return np.array(
        [
            names.index(name if name in names else name.replace("FIRE", "") or "NOOP")
            for name in Action.__members__
        ]
    )


class Atari(VectorWrapper):
    """N copies of one game, preprocessed in C++.

    One step is four emulator frames; the pixel-wise maximum of the last two is scaled to 84 x 84
    grey values. Frames are not stacked here: they are stored once and stacked where they
    are read. Following the R2D2 paper (Sections 2.3 and 4) the rewards are not clipped and losing
    a life does not end an episode; the number of lives left is in `infos["lives"]`, int [N].
    Actions are never repeated at random, and an episode begins with 0 to 30 no-op frames.

    A game over terminates, the limit of `max_frames` truncates.

    Args:
      game: one of `games()`.
      num_envs: N, the number of copies.
      full_action_space: all 18 actions, or only those that do something in this game.
      max_frames: emulator frames after which an episode is truncated.
      for_people: observations are the screen as people see it, [N, 210, 160, 3], not uint8
        [N, 84, 84]; all else, chance included, is the same.

    Attributes:
      action_names: what each action does, in words.
    """

    def __init__(
        self,
        game: str,
        num_envs: int,
        *,
        full_action_space: bool = True,
        max_frames: int = MAX_FRAMES_PER_EPISODE,
        for_people: bool = False,
    ) -> None:
        height, width = SCREEN if for_people else (HEIGHT, WIDTH)
        env = AtariVectorEnv(
            game,
            num_envs,
            # More threads than cores only take turns; zero would mean one for each environment.
            num_threads=min(num_envs, len(os.sched_getaffinity(0))),
            full_action_space=full_action_space,
            max_num_frames_per_episode=max_frames,
            frameskip=FRAMES_PER_STEP,
            maxpool=True,
            img_height=height,
            img_width=width,
            grayscale=not for_people,
            stack_num=1,
            noop_max=30,
            reward_clipping=False,
            use_fire_reset=False,
            episodic_life=False,
            repeat_action_probability=0.0,
        )
        super().__init__(env)
        self._emulators = env
        shape = (*SCREEN, 3) if for_people else (HEIGHT, WIDTH)
        self.single_observation_space = spaces.Box(0, 255, shape, np.uint8)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        legal = list(env.ale.get_action_set())
        self._indices = _without_illegal_fire(legal) if full_action_space else np.arange(len(legal))
        words = [_WORD.findall(legal[index].name.lower()) for index in self._indices]
        self.action_names = tuple(map(" ".join, words))
        self.single_action_space = spaces.Discrete(len(self._indices))
        self.action_space = batch_space(self.single_action_space, num_envs)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Begun:
        seeds: Any = None if seed is None else spread(seed, self.num_envs)
        observations, infos = self.env.reset(seed=seeds, options=options)
        return observations[:, 0], infos  # [N, 84, 84], or the screens

    def step(self, actions: np.ndarray) -> Step:
        self.send(actions)
        return self.recv()

    def send(self, actions: np.ndarray) -> None:
        """Begins a step, which goes on in threads of its own until `recv` fetches its result."""
        self._emulators.send(self._indices[actions])

    def recv(self) -> Step:
        """Waits for the step that `send` began and returns what `step` does."""
        observations, rewards, terminated, truncated, infos = self._emulators.recv()
        return observations[:, 0], rewards.astype(np.float32), terminated, truncated, infos


KINDS = {
    "atari": kinds.Kind(
        form="atari:<game in snake_case>",
        make=lambda task, num_envs, options: Atari(
            task.rest, num_envs, full_action_space=options.full_action_space
        ),
        tasks=games,
        frames_per_step=FRAMES_PER_STEP,
        images=lambda task: [(HEIGHT, WIDTH)],
    )
}
