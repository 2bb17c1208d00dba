"""A stand-in for DeepMind Lab's Python module that is as strict as the real one.

The tests of `environments.dmlab` run on both where the real one is installed. The world is a toy: a
player who turns and walks on a torus, apples that pay 1, a picture that depends on all of it.
"""

import hashlib
import os
import pathlib
import random
import signal
from typing import Any

import numpy as np

_SETTINGS = {"width": "320", "height": "240", "appendCommand": "", "allowHoldOutLevels": "false"}
_SECONDS = {"seekavoid_arena_01": 20}
_COLOURS = ("red", "green", "blue")


class Lab:
    """One engine."""

    def __init__(
        self,
        level: str,
        observations: list,
        config: dict,
        level_cache: Any,
        temp_folder: str,
    ):
        self._config = self._checked(level, config)
        self._level = level
        self._level_cache = level_cache
        self._folder = temp_folder
        self._names = list(observations)
        self._state = "loaded"
        self._resets = 0

    @staticmethod
    def _checked(level: str, config: dict) -> dict[str, str]:
        for value in config.values():
            if not isinstance(value, str):
                raise TypeError("bad argument type for built-in operation")
        for side in ("width", "height"):
            pixels = int(config.get(side, "4"))
            if pixels < 4 or pixels % 4:
                raise RuntimeError(f"'{side}' must be a positive multiple of 4. Actual {pixels}")
        if level.removeprefix("contributed/dmlab30/").startswith("missing"):
            raise RuntimeError(f'Failed to init environment - "Level not found: {level}"')
        for key in config:
            if key not in _SETTINGS:
                raise RuntimeError(f'Failed to init environment - "Invalid setting {key}"')
        if level.endswith("_test") and config.get("allowHoldOutLevels") != "true":
            raise RuntimeError('Failed to init environment - "only be used during evaluation"')
        return _SETTINGS | config

    def reset(self, seed: int) -> bool:
        if not isinstance(seed, int):
            raise ValueError(f"'seed' must be int or None, was '{type(seed).__name__}'.")
        if "+quit" in self._config["appendCommand"]:
            os._exit(0)
        if "+set developer 1 +crash" in self._config["appendCommand"]:
            os.write(2, b"As was asked\n")
            os.kill(os.getpid(), signal.SIGSEGV)
        os.write(1, b"Loading a map\n")
        # Something of an earlier episode is left in the engine: only the first can be repeated.
        left = os.urandom(4).hex() if self._resets else ""
        self._random = random.Random(f"{self._level} {seed} {left}")
        self._map = self._random.randrange(2**31)
        self._compile()
        self._place, self._angle, self._tilt = self._random.random(), 0, 0
        self._apples = sorted(self._random.random() for _ in range(20))
        self._say()
        self._frames_played = 0
        self._resets += 1
        self._state = "running"
        return True

    def _compile(self) -> None:
        """Levels whose maps are made for each episode ask the cache."""
        pk3 = pathlib.Path(self._folder) / "map.pk3"
        pk3.write_bytes(b"fixed")
        if "explore" not in self._level:
            return
        key = f"maze_noaas_{hashlib.md5(str(self._map).encode()).hexdigest()}"
        pk3.unlink()
        if not self._level_cache.fetch(key, str(pk3)):
            pk3.write_bytes(f"compiled {self._map}".encode())
            self._level_cache.write(key, str(pk3))
        if pk3.read_bytes() != f"compiled {self._map}".encode():
            os.abort()  # a broken map

    def step(self, action: np.ndarray, num_steps: int) -> float:
        self._refuse_unless_running()
        if action.shape != (7,) or action.dtype != np.intc:
            raise ValueError("action must have shape (7) and dtype np.intc")
        return sum((self._advance(action.tolist()) for _ in range(num_steps)), start=0.0)

    def _advance(self, action: list[int]) -> float:
        if self._state != "running":
            return 0.0
        self._angle += action[0]
        self._tilt += action[1]
        before, self._place = self._place, (self._place + 0.002 * (action[3] + action[2])) % 1.0
        low, high = sorted((before, self._place))
        eaten = [apple for apple in self._apples if low < apple <= high] if high - low < 0.5 else []
        self._apples = [apple for apple in self._apples if apple not in eaten]
        if eaten or action[4]:
            self._say()
        self._frames_played += 1
        if self._frames_played == 60 * _SECONDS.get(self._level, 60):
            self._state = "ended"
        return float(len(eaten))

    def _say(self) -> None:
        wanted = f"{self._random.choice(_COLOURS)} {self._random.choice(('ball', 'balloon'))}"
        self._instruction = f"Get the {wanted}" if "language" in self._level else ""

    def observations(self) -> dict[str, Any]:
        self._refuse_unless_running()
        return {
            name: self._instruction if name == "INSTR" else self._image() for name in self._names
        }

    def _image(self) -> np.ndarray:
        height, width = int(self._config["height"]), int(self._config["width"])
        image = np.empty((height, width, 3), np.uint8)
        image[..., 0] = self._map % 251
        image[..., 1] = (np.arange(width) + self._angle) % 256
        image[..., 2] = (np.arange(height)[:, None] + int(1000 * self._place) + self._tilt) % 256
        return image

    def is_running(self) -> bool:
        return self._state == "running"

    def _refuse_unless_running(self) -> None:
        if self._state != "running":
            raise RuntimeError("Environment in wrong status for this call")
