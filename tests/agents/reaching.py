"""A small continuous task: a point is shown at the first step, and is to be named ever after."""

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

NUM_STEPS = 5
LOW, HIGH = np.array([-1.0, 2.0], np.float32), np.array([1.0, 6.0], np.float32)
REACH = 0.6  # of the way from the middle to a bound

# Who does not see the point does best in the middle. The distance from there of a random point of a
# square is (√2 + ln(1 + √2)) / 6 of a side.
_BLIND_STEP = 1 - 2 * REACH * (np.sqrt(2) + np.log(1 + np.sqrt(2))) / 6
BLIND = NUM_STEPS * _BLIND_STEP  # the best return of who never sees it
FORGETFUL = 1 + (NUM_STEPS - 1) * _BLIND_STEP  # of who sees it once and has no memory

REMEMBERED, IN_SIGHT = "tests.agents.reaching:Reach", "tests.agents.reaching:in_sight"

# Of an agent that learns it in seconds: σ from 0.14 to 1, so that few steps find the way.
SMALL: dict[str, Any] = dict(
    torso="mlp",
    hidden_sizes=(32,),
    frame_stack=1,
    frames_per_step=1,
    life_loss=False,
    reward_transform="none",
    discount=0.9,
    length=10,
    period=5,
    batch_size=16,
    learning_rate=1e-3,
    annealing_frames=None,
    rmsprop_epsilon=1e-3,
    max_gradient_norm=40.0,
    log_sigma_min=-2.0,
    log_sigma_max=0.0,
)
TRAINING: dict[str, Any] = dict(
    num_environments=16, vector_steps=800, evaluation_episodes=100, seed=1
)


class Reach(gymnasium.Env):
    """Pays for each step 1 less the distance, in halves of the range of each number.

    Args:
      remembers: whether the point is shown at every step, so that nothing has to be remembered.
    """

    action_space = spaces.Box(LOW, HIGH)
    observation_space = spaces.Box(-1, 1, (3,), np.float32)

    def __init__(self, remembers: bool = False) -> None:
        self._remembers = remembers

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        super().reset(seed=seed)
        self._point = self.np_random.uniform(-REACH, REACH, 2)
        self._left = NUM_STEPS
        return self._seen(), {}

    def step(self, action: np.ndarray) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        assert self.action_space.contains(action), action
        reached = (action - LOW) / (HIGH - LOW) * 2 - 1
        self._left -= 1
        reward = 1 - float(np.linalg.norm(reached - self._point))
        return self._seen(), reward, self._left == 0, False, {}

    def _seen(self) -> np.ndarray:
        shows = self._remembers or self._left == NUM_STEPS
        return np.array([1, *self._point] if shows else [0, 0, 0], np.float32)


def in_sight() -> Reach:
    """The point is shown at every step."""
    return Reach(remembers=True)
