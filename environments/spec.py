"""What an environment takes and gives, in Acme's terms.

Apart from `suites`, which answers a misspelt name in less time than Acme takes to be imported, and
which an agent that plays somebody's own environment in one process needs not at all.
"""

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from acme import specs
from gymnasium import spaces
from gymnasium.vector import VectorEnv


def make_environment_spec(name: str, *, full_action_space: bool = True) -> specs.EnvironmentSpec:
    """Describes one environment in Acme's terms; of a suite, what all its tasks share.

    Args:
      name: for example `atari:pong` or `atari57`.
      full_action_space: as for `suites.make`.

    Raises:
      ValueError: the name is unknown, or two tasks differ in their observations or actions.
    """
    from environments import multitask, suites

    suites.check(name)
    samples = _samples(suites.tasks(name), full_action_space)
    return spec_of(*multitask.shared_spaces(samples))


def _samples(names: Sequence[str], full_action_space: bool) -> Iterator[tuple[str, VectorEnv]]:
    """Makes one environment of each task, each closed before the next."""
    from environments import suites

    games = 0
    for name in names:
        games += name.startswith("atari:")
        if full_action_space and name.startswith("atari:") and games > 1:
            continue  # as the first game, and 57 games take seconds to load
        with contextlib.closing(
            suites.make(name, 1, seed=0, full_action_space=full_action_space)
        ) as env:
            yield name, env


def spec_of(observations: spaces.Space, actions: spaces.Space) -> specs.EnvironmentSpec:
    """One environment's spaces in Acme's terms.

    Args:
      observations: an array's, or a dictionary of them.
      actions: numbers from 0, one or several, or a vector [D] within bounds.
    """
    return specs.EnvironmentSpec(
        observations=_observation_spec(observations),
        actions=_action_spec(actions),
        rewards=specs.Array((), np.float32, name="reward"),
        discounts=specs.BoundedArray((), np.float32, 0.0, 1.0, name="discount"),
    )


def _action_spec(space: spaces.Space) -> specs.DiscreteArray | specs.BoundedArray:
    if isinstance(space, spaces.Discrete):
        return specs.DiscreteArray(int(space.n), dtype=np.int32, name="action")
    if isinstance(space, spaces.MultiDiscrete):
        last = space.nvec - 1
        return specs.BoundedArray(space.shape, np.int32, np.zeros_like(last), last, name="action")
    return _array_spec(space, "action")


def _observation_spec(space: spaces.Space) -> Any:
    if isinstance(space, spaces.Dict):
        return {name: _array_spec(part, name) for name, part in space.items()}
    return _array_spec(space, "observation")


def _array_spec(space: spaces.Space, name: str) -> specs.Array:
    assert isinstance(space, spaces.Box)
    if space.is_bounded():
        return specs.BoundedArray(space.shape, space.dtype, space.low, space.high, name=name)
    return specs.Array(space.shape, space.dtype, name=name)
