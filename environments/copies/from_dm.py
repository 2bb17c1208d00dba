"""dm_env's environments as gymnasium's; `environments.dm` is the other direction."""

from collections.abc import Mapping
from typing import Any

import dm_env
import gymnasium
import numpy as np
from dm_env import specs
from gymnasium import spaces

_LONGEST_TEXT = 10_000  # letters; dm_env does not say


class FromDm(gymnasium.Env):
    """A dm_env environment behind gymnasium's interface.

    A LAST step with discount 0 terminates, with any other one truncates. dm_env knows no seeds, so
    the seed of `reset` changes nothing, and chance is the environment's own. But bsuite's copies of
    an environment all have the same chance by themselves: theirs is begun with the seed.

    Args:
      environment: the dm_env environment.

    Raises:
      ValueError: as `space_of`.
    """

    def __init__(self, environment: dm_env.Environment) -> None:
        self._environment = environment
        self.observation_space = space_of(environment.observation_spec())
        self.action_space = space_of(environment.action_spec())

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        if seed is not None:
            raw = getattr(self._environment, "raw_env", self._environment)  # of bsuite's wrappers
            if isinstance(getattr(raw, "_rng", None), np.random.RandomState):
                raw._rng = np.random.RandomState(seed % 2**32)
        return self._environment.reset().observation, {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        timestep = self._environment.step(np.asarray(action, self.action_space.dtype)[()])
        terminated = bool(timestep.last() and timestep.discount == 0)
        truncated = timestep.last() and not terminated
        return timestep.observation, float(timestep.reward), terminated, truncated, {}

    def close(self) -> None:
        self._environment.close()


def space_of(spec: Any) -> spaces.Space:
    """The space of the values that a spec of Acme's or dm_env's describes.

    Raises:
      ValueError: it is neither an `Array` of numbers or a text, nor made of such.
    """
    if isinstance(spec, Mapping):
        return spaces.Dict({name: space_of(part) for name, part in spec.items()})
    if isinstance(spec, list | tuple):
        return spaces.Tuple([space_of(part) for part in spec])
    if isinstance(spec, specs.StringArray) and not spec.shape:
        return spaces.Text(_LONGEST_TEXT)
    if isinstance(spec, specs.DiscreteArray):
        return spaces.Discrete(spec.num_values, dtype=spec.dtype)
    if not isinstance(spec, specs.Array) or spec.dtype.kind not in "biuf":
        raise ValueError(
            f"A spec must be an Array of numbers, a text, or a dictionary of them, got {spec}."
        )
    if isinstance(spec, specs.BoundedArray):
        low, high = spec.minimum, spec.maximum
    elif spec.dtype.kind == "f":
        low, high = -np.inf, np.inf
    elif spec.dtype.kind == "b":
        low, high = False, True
    else:
        low, high = np.iinfo(spec.dtype).min, np.iinfo(spec.dtype).max
    low, high = (np.broadcast_to(bound, spec.shape).astype(spec.dtype) for bound in (low, high))
    return spaces.Box(low, high, dtype=spec.dtype)
