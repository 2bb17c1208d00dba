"""Acme's specs of gymnasium's spaces; `from_dm` is the other direction.

It imports no environment of this project, since a library's user may bring another.
"""

import numpy as np
from acme import specs
from gymnasium import spaces

from environments.copies.vector import in_a_line


def spec_of(observations: spaces.Space, actions: spaces.Space) -> specs.EnvironmentSpec:
    """One environment's spaces in Acme's terms.

    Args:
      observations: an array's, or a dictionary of them.
      actions: numbers from 0, one or several, or a vector [D] within bounds.

    Raises:
      ValueError: a clause, "must ..., got ..."; they are others.
    """
    return specs.EnvironmentSpec(
        observations=(
            {name: _array_spec(part, name) for name, part in observations.items()}
            if isinstance(observations, spaces.Dict)
            else _array_spec(observations, "observation")
        ),
        actions=_action_spec(actions),
        rewards=specs.Array((), np.float32, name="reward"),
        discounts=specs.BoundedArray((), np.float32, 0.0, 1.0, name="discount"),
    )


def _action_spec(space: spaces.Space) -> specs.DiscreteArray | specs.BoundedArray:
    if np.any(getattr(space, "start", 0)):
        raise ValueError(f"must count actions from 0, got {in_a_line(space)}")
    if isinstance(space, spaces.Discrete):
        return specs.DiscreteArray(int(space.n), dtype=np.int32, name="action")
    if isinstance(space, spaces.MultiDiscrete):
        last = space.nvec - 1
        return specs.BoundedArray(space.shape, np.int32, np.zeros_like(last), last, name="action")
    return _array_spec(space, "action")


def _array_spec(space: spaces.Space, name: str) -> specs.Array:
    if not isinstance(space, spaces.Box):
        raise ValueError(f"must have an array as {name}, got {in_a_line(space)}")
    if space.is_bounded():
        return specs.BoundedArray(space.shape, space.dtype, space.low, space.high, name=name)
    return specs.Array(space.shape, space.dtype, name=name)
