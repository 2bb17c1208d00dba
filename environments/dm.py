"""One environment of `suites` behind dm_env's interface, for `acme.EnvironmentLoop`."""

from typing import Any

import dm_env
import gymnasium
import numpy as np
import tree
from acme import specs

from environments import suites
from environments.spec import make_environment_spec


def make(
    name: str, *, seed: int = 0, full_action_space: bool = True, full_rendering: bool = False
) -> "DmEnvironment":
    """Makes one environment by its name; arguments and errors are those of `suites.make`."""
    environment = suites.make(
        name, 1, seed=seed, full_action_space=full_action_space, full_rendering=full_rendering
    )
    spec = make_environment_spec(name, full_action_space=full_action_space)
    return DmEnvironment(environment, spec)


class DmEnvironment(dm_env.Environment):
    """A `VectorEnv` of one environment as dm_env sees it: no batch axis, resets when told to.

    Termination gives discount 0; truncation ends an episode with discount 1.

    Args:
      environment: resets on the step after an episode's end.
      spec: of its observations and actions.
    """

    def __init__(
        self, environment: gymnasium.vector.VectorEnv, spec: specs.EnvironmentSpec
    ) -> None:
        self._environment = environment
        self._spec = spec
        self._started = False
        self._ended = False

    def reset(self) -> dm_env.TimeStep:
        """Begins an episode; one that has not ended is given up."""
        if self._ended:  # the next step resets, whatever its action
            observation = self._environment.step(self._batch(self._spec.actions.generate_value()))[
                0
            ]
        else:
            observation = self._environment.reset()[0]
        self._started, self._ended = True, False
        return dm_env.restart(_only(observation))

    def step(self, action: Any) -> dm_env.TimeStep:
        """One step; begins an episode instead where none is under way."""
        if self._ended or not self._started:
            return self.reset()
        outcome = self._environment.step(self._batch(action))
        observation, reward, terminated, truncated, _ = outcome
        self._ended = bool(terminated[0] or truncated[0])
        end = dm_env.termination if terminated[0] else dm_env.truncation
        return (end if self._ended else dm_env.transition)(float(reward[0]), _only(observation))

    def observation_spec(self) -> Any:
        """Shape and type of an observation, or of each part of one."""
        return self._spec.observations

    def action_spec(self) -> specs.DiscreteArray | specs.BoundedArray:
        """How many actions there are, or the bounds of their vectors."""
        return self._spec.actions

    def _batch(self, action: Any) -> np.ndarray:
        """A batch of one action, [1] or [1, D]."""
        return np.asarray(action, self._spec.actions.dtype)[np.newaxis]

    def close(self) -> None:
        """Ends the environment."""
        self._environment.close()


def _only(observation: Any) -> Any:
    """The one row of a batch."""
    return tree.map_structure(lambda leaf: leaf[0], observation)
