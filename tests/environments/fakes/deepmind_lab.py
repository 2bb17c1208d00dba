"""A stand-in for DeepMind Lab's Python module that is as strict as the real one.

What both must do is in `tests/environments/lab`. The world is a toy: a player who turns
and walks on a torus, apples that pay 1, a picture that depends on all of it.
"""

import ctypes
import hashlib
import os
import pathlib
import random
import shutil
import signal
import tempfile
import time
from typing import Any

import numpy as np

READABLE, WRITABLE, READ_WRITABLE, LISTABLE = 1, 2, 3, 4

_SETTINGS = {"width": "320", "height": "240", "fps": "60", "appendCommand": "", "mixerSeed": "0"}
_OF_LEVELS = {"allowHoldOutLevels", "episodeLengthSeconds", "logLevel", "randomSeed"}
_SECONDS = {"seekavoid_arena_01": 20}
_ACTIONS = {
    "LOOK_LEFT_RIGHT_PIXELS_PER_FRAME": (-512, 512),
    "LOOK_DOWN_UP_PIXELS_PER_FRAME": (-512, 512),
    "STRAFE_LEFT_RIGHT": (-1, 1),
    "MOVE_BACK_FORWARD": (-1, 1),
    "FIRE": (0, 1),
    "JUMP": (0, 1),
    "CROUCH": (0, 1),
}
_COLOURS = ("red", "green", "blue")

# The engine's generator is seeded when the module is imported: a fork copies its state.
_rand = random.Random(int(time.time()))  # noqa: TID251 (as the engine does)


class Lab:
    """One engine."""

    def __init__(
        self,
        level: str,
        observations: list,
        config: dict | None = None,
        renderer: str = "software",
        level_cache: Any = None,
        temp_folder: str | None = None,
    ):
        self._state = "closed"
        _expect(level, str)
        _expect(observations, list)
        _expect({} if config is None else config, dict)
        if renderer not in ("software", "hardware", ""):
            raise RuntimeError(f'Failed to set renderer "{renderer}"')
        self._config = self._checked(level, config or {})
        self._level = level
        self._level_cache = level_cache
        self._owns_folder = temp_folder is None
        self._folder = temp_folder or tempfile.mkdtemp(prefix="dmlab_temp_folder_")
        os.makedirs(self._folder, exist_ok=True)
        known = [spec["name"] for spec in self.observation_spec()]
        for name in observations:
            if name not in known:
                raise ValueError(f"Unknown observation '{name}'.")
        self._names = list(observations)
        self._state = "loaded"
        self._episode = 0
        self._resets = 0
        self._num_steps = 0

    @staticmethod
    def _checked(level: str, config: dict) -> dict[str, str]:
        for key, value in config.items():
            if not isinstance(key, str) or not isinstance(value, str):
                raise TypeError("bad argument type for built-in operation")
        for side in ("width", "height"):
            pixels = int(config.get(side, "4"))
            if pixels < 4 or pixels % 4:
                raise RuntimeError(f"'{side}' must be a positive multiple of 4. Actual {pixels}")
        name = level.removeprefix("contributed/dmlab30/")
        if name.startswith("missing") or not name:
            raise RuntimeError(f'Failed to init environment - "Level not found: {level}"')
        for key in config:
            if key not in _SETTINGS and key not in _OF_LEVELS:
                raise RuntimeError(f'Failed to init environment - "Invalid setting {key}"')
        if level.endswith("_test") and config.get("allowHoldOutLevels") != "true":
            raise RuntimeError('Failed to init environment - "only be used during evaluation"')
        return _SETTINGS | config

    def reset(self, episode: int = -1, seed: int | None = None) -> bool:
        if not isinstance(episode, int):
            raise TypeError("an integer is required")
        if seed is not None and not isinstance(seed, int):
            raise ValueError(f"'seed' must be int or None, was '{type(seed).__name__}'.")
        self._refuse_closed("start")
        if "+quit" in self._config["appendCommand"]:
            os._exit(0)
        if "+set developer 1 +crash" in self._config["appendCommand"]:
            os.write(2, b"As was asked\n")
            os.kill(os.getpid(), signal.SIGSEGV)
        os.write(1, b"Loading a map\n")
        seed = _rand.randrange(2**31) if seed is None else seed
        self._episode = episode if episode >= 0 else self._episode
        # Something of an earlier episode is left in the engine: only the first can be repeated.
        left = os.urandom(4).hex() if self._resets else ""
        self._random = random.Random(f"{self._level} {seed} {self._config['mixerSeed']} {left}")
        self._map = self._random.randrange(2**31)
        self._compile()
        self._place, self._angle, self._tilt = self._random.random(), 0, 0
        self._apples = sorted(self._random.random() for _ in range(20))
        self._say()
        self._frames_played = self._num_steps = 0
        self._episode += 1
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
        cache = self._level_cache
        if cache is None or not cache.fetch(key, str(pk3)):
            pk3.write_bytes(f"compiled {self._map}".encode())
            if cache is not None:
                cache.write(key, str(pk3))
        if pk3.read_bytes() != f"compiled {self._map}".encode():
            os.abort()  # a broken map

    def step(self, action: np.ndarray, num_steps: int = 1) -> float:
        _expect(action, np.ndarray)
        if self._state != "running":
            raise RuntimeError("Environment in wrong status to advance.")
        if action.shape != (len(_ACTIONS),):
            raise ValueError(f"action must have shape ({len(_ACTIONS)})")
        if action.dtype != np.intc:
            raise ValueError("action must have dtype np.intc")
        # The strides are not looked at: this is what follows the first number in memory.
        pointer = ctypes.cast(action.ctypes.data, ctypes.POINTER(ctypes.c_int))
        read = [pointer[i] for i in range(len(_ACTIONS))]
        self._num_steps += num_steps
        return sum((self._advance(read) for _ in range(num_steps)), start=0.0)

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
        seconds = int(self._config.get("episodeLengthSeconds", _SECONDS.get(self._level, 60)))
        if self._frames_played == 60 * seconds:
            self._state = "ended"
        return float(len(eaten))

    def _say(self) -> None:
        wanted = f"{self._random.choice(_COLOURS)} {self._random.choice(('ball', 'balloon'))}"
        self._instruction = f"Get the {wanted}" if "language" in self._level else ""

    def observations(self) -> dict[str, Any]:
        if self._state != "running":
            raise RuntimeError("Environment in wrong status for call to observations()")
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

    def observation_spec(self) -> list[dict[str, Any]]:
        height, width = int(self._config["height"]), int(self._config["width"])
        return [
            {"name": "RGB_INTERLEAVED", "dtype": np.uint8, "shape": (height, width, 3)},
            {"name": "INSTR", "dtype": str, "shape": ()},
        ]

    def action_spec(self) -> list[dict[str, Any]]:
        return [{"name": name, "min": low, "max": high} for name, (low, high) in _ACTIONS.items()]

    def is_running(self) -> bool:
        return self._state == "running"

    def num_steps(self) -> int:
        return self._num_steps

    def events(self) -> list:
        return []

    def close(self) -> bool:
        was_open = self._state != "closed"
        self._state = "closed"
        if was_open and self._owns_folder:
            shutil.rmtree(self._folder, ignore_errors=True)
        return was_open

    def _refuse_closed(self, verb: str) -> None:
        if self._state == "closed":
            raise RuntimeError(f"Failed to {verb} environment")


def version() -> str:
    return "1.0"


def _expect(value: Any, kind: type) -> None:
    if not isinstance(value, kind):
        raise TypeError(f"argument must be {kind.__name__}, not {type(value).__name__}")
