"""Environments that say which actions are legal, and raise where one is not that is taken."""

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

NUM_ACTIONS = 6


class Shown(gymnasium.Env):
    """Random masks in the observation, often with one legal action only; pays for the first one.

    Every third episode terminates, without a legal action at its end; others are truncated.
    """

    observation_space: spaces.Space = spaces.Dict(
        observation=spaces.Box(0, 1, (NUM_ACTIONS + 1,), np.float32),
        action_mask=spaces.Box(0, 1, (NUM_ACTIONS,), np.int8),
    )
    action_space: spaces.Space = spaces.Discrete(NUM_ACTIONS)

    def __init__(self) -> None:
        self._episodes = 0
        self._mask = np.zeros(NUM_ACTIONS, np.int8)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self._episodes, self._left = self._episodes + 1, int(self.np_random.integers(1, 7))
        return self._seen(), self._info()

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        place = int(action) - self._first
        if not self._mask[place]:
            raise AssertionError(f"{place} is not legal: {self._mask}")
        reward, self._left = float(place == np.argmax(self._mask)), self._left - 1
        terminated = self._left == 0 and self._episodes % 3 == 0
        seen = self._seen(any_legal=not terminated)
        return seen, reward, terminated, self._left == 0 and not terminated, self._info()

    @property
    def _first(self) -> int:
        return int(getattr(self.action_space, "start", 0))

    def _draw(self, any_legal: bool) -> np.ndarray:
        mask = (self.np_random.random(NUM_ACTIONS) < 0.3).astype(np.int8)
        mask[self.np_random.integers(NUM_ACTIONS)] = 1
        self._mask = mask * any_legal
        return np.append(mask, self.np_random.random()).astype(np.float32)

    def _seen(self, *, any_legal: bool = True) -> Any:
        observation = self._draw(any_legal)
        return {"observation": observation, "action_mask": self._mask.copy()}

    def _info(self) -> dict[str, Any]:
        return {}


class InInfo(Shown):
    """The mask in `info`, as Taxi has it, and actions from 3 on."""

    observation_space: spaces.Space = spaces.Box(0, 1, (NUM_ACTIONS + 1,), np.float32)
    action_space: spaces.Space = spaces.Discrete(NUM_ACTIONS, start=3)

    def _seen(self, *, any_legal: bool = True) -> Any:
        return self._draw(any_legal)

    def _info(self) -> dict[str, Any]:
        return {"action_mask": self._mask.astype(bool).tolist()} if self._mask.any() else {}


class Stuck(Shown):
    """No legal action after the second step."""

    def _seen(self, *, any_legal: bool = True) -> Any:
        return super()._seen(any_legal=any_legal and self._left != 4)

    def reset(self, **how: Any) -> tuple[Any, dict[str, Any]]:
        super().reset(**how)
        self._left = 6
        return self._seen(), {}


class StuckAtOnce(Shown):
    """No legal action at all."""

    def _seen(self, *, any_legal: bool = True) -> Any:
        return super()._seen(any_legal=False)


class Short(Shown):
    """A mask of fewer actions than there are."""

    action_space = spaces.Discrete(NUM_ACTIONS + 1)


class Pairs(Shown):
    """Two numbers an action."""

    action_space = spaces.MultiDiscrete([2, 3])


class PairsInInfo(InInfo):
    """Two numbers an action, and the mask in `info`."""

    action_space = spaces.MultiDiscrete([2, 3])


class Vector(InInfo):
    """A vector for an action."""

    action_space = spaces.Box(-1, 1, (NUM_ACTIONS,), np.float32)


class Words(Shown):
    """A mask that is a text."""

    observation_space = spaces.Dict(action_mask=spaces.Text(6), observation=spaces.Discrete(2))


class Halves(Shown):
    """A mask whose numbers are not 0 and 1."""

    observation_space = spaces.Dict(
        observation=spaces.Box(0, 1, (NUM_ACTIONS + 1,), np.float32),
        action_mask=spaces.Box(0, 1, (NUM_ACTIONS,), np.float32),
    )

    def _seen(self, *, any_legal: bool = True) -> Any:
        return {**super()._seen(any_legal=any_legal), "action_mask": np.full(NUM_ACTIONS, 0.5, "f")}


class Alone(Shown):
    """Nothing beside the mask."""

    observation_space = spaces.Dict(action_mask=spaces.MultiBinary(NUM_ACTIONS))


class Once(InInfo):
    """A mask in the first `info` alone."""

    def _info(self) -> dict[str, Any]:
        return super()._info() if self._left > 1 else {}

    def reset(self, **how: Any) -> tuple[Any, dict[str, Any]]:
        seen, _ = super().reset(**how)
        self._left = 2
        return seen, {"action_mask": self._mask}


class NotAtFirst(InInfo):
    """A mask in the `info` of steps, and none in the first."""

    action_space = spaces.Discrete(NUM_ACTIONS)

    def _draw(self, any_legal: bool) -> np.ndarray:
        seen = super()._draw(any_legal)
        self._mask[:] = 1
        return seen

    def reset(self, **how: Any) -> tuple[Any, dict[str, Any]]:
        return super().reset(**how)[0], {}


class Parts(Shown):
    """Several parts beside the mask, which is MultiBinary."""

    observation_space = spaces.Dict(
        image=spaces.Box(0, 255, (12, 12, 3), np.uint8),
        more=spaces.Dict(action_mask=spaces.Box(0, 1, (2,), np.float32)),
        action_mask=spaces.MultiBinary(NUM_ACTIONS),
        text=spaces.Text(9),
    )

    def _seen(self, *, any_legal: bool = True) -> Any:
        self._draw(any_legal)
        return {
            "image": self.np_random.integers(256, size=(12, 12, 3), dtype=np.uint8),
            "more": {"action_mask": np.ones(2, np.float32)},
            "action_mask": self._mask.copy(),
            "text": "go left",
        }
