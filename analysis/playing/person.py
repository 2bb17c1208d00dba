"""A person plays: a window shows the environment, and keys are actions.

`gymnasium.utils.play` was looked at: it knows no vector environments, as those of Atari are.
"""

import os
from collections.abc import Callable
from typing import Any

import pygame

from environments.copies.vector import ACTION_MASK, has_mask
from environments.screens import Screen
from run_folder.settings import SettingsError

_SIDE = 600  # of the window, in pixels, roughly
_NO_KEY = "none"  # the action while no key is pressed: the environment then does not wait


def chooser(screen: Screen, keys: str) -> Callable[[Any], int]:
    """What a person chooses, at each observation; the window's end ends the process in order.

    A key whose action is not legal means nothing.

    Args:
      screen: what is played.
      keys: as left=0,right=1; with none=0 among them it goes on by itself.

    Raises:
      SettingsError: there is no display, or a key or an action is unknown.
    """
    if not {"DISPLAY", "WAYLAND_DISPLAY", "SDL_VIDEODRIVER"} & set(os.environ):
        raise SettingsError("--person needs a display, and this process has none.")
    pygame.display.init()  # and no sound
    actions = _parsed(keys, screen.action_names)
    clock = pygame.time.Clock()
    waits = None not in actions

    def choose(observation: Any) -> int:
        legal = actions
        if has_mask(observation):
            mask = observation[ACTION_MASK]
            legal = {key: action for key, action in actions.items() if mask[action]}
        picture = screen.picture()
        scale = max(1, _SIDE // max(picture.shape[:2]))
        large = picture.repeat(scale, axis=0).repeat(scale, axis=1).swapaxes(0, 1)
        pygame.display.set_mode(large.shape[:2]).blit(pygame.surfarray.make_surface(large), (0, 0))
        pygame.display.flip()
        while True:
            clock.tick(30 if waits else screen.frames_per_second)
            for event in pygame.event.get():
                if event.type == pygame.QUIT:
                    raise KeyboardInterrupt
                if event.type == pygame.KEYDOWN and event.key in legal:
                    return legal[event.key]
            if not waits:
                held = pygame.key.get_pressed()
                down = (key for key in legal if key is not None and held[key])
                return actions[next(down, None)]

    return choose


def _parsed(keys: str, names: tuple[str, ...]) -> dict[int | None, int]:
    """Key -> action."""
    found: dict[int | None, int] = {}
    try:
        for part in keys.split(","):
            key, _, action = part.partition("=")
            found[None if key == _NO_KEY else pygame.key.key_code(key)] = int(action)
            if int(action) not in range(len(names)):
                raise ValueError(part)
    except ValueError as error:
        there = ", ".join(f"{i} {name}" for i, name in enumerate(names))
        raise SettingsError(
            f"--keys must name keys and actions, as left=0,right=1, got {keys!r} ({error}); the "
            f"actions are {there or 'not numbered, so nobody can play it by keys'}."
        ) from None
    return found
