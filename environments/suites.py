"""From an environment's name to the environment.

`catch`, `memory:<task>`, `atari:<game>` and `gym:<id>` can be made.
"""

import difflib
from collections.abc import Callable

import numpy as np
from acme import specs
from gymnasium import spaces
from gymnasium.vector import VectorEnv

from environments import atari, catch, gym, memory, seeding

_TASKS: dict[str, Callable[[], list[str]]] = {
    "memory": lambda: sorted(memory.TASKS),
    "atari": atari.games,
    "gym": gym.ids,
}
_PLANNED = ("atari57", "dmlab", "dmlab30", "control", "control-pixels")


def make(name: str, num_envs: int, *, seed: int, full_action_space: bool = True) -> VectorEnv:
    """Makes environments that share a name and differ in their random streams.

    Every one has a single Box observation, discrete actions, float32 rewards, and autoresets on
    the next step: after an episode's end, `step` ignores the action and returns a reward of 0 and
    the new episode's first observation.

    Args:
        name: for example `atari:pong`.
        num_envs: N, the number of environments.
        seed: a non-negative integer. The first `reset()` uses it; the same seed and actions give
            the same stream, bit for bit.
        full_action_space: for Atari, all 18 actions instead of those the game makes use of.

    Raises:
        ValueError: the name is unknown, or a number is too small.
    """
    check(name)
    if num_envs < 1:
        raise ValueError(f"num_envs must be at least 1, but it is {num_envs}.")
    kind, _, task = name.partition(":")
    env: VectorEnv
    if kind == "catch":
        env = catch.Catch(num_envs)
    elif kind == "memory":
        env = memory.TASKS[task].make(num_envs)
    elif kind == "atari":
        env = atari.Atari(task, num_envs, full_action_space=full_action_space)
    else:
        env = gym.Gym(task, num_envs)
    return seeding.SeededVectorEnv(env, seed)


def check(name: str) -> None:
    """Refuses a name that `make` could not make.

    Args:
        name: for example `atari:pong`.

    Raises:
        ValueError: a sentence that quotes the name and, if one is near, suggests the right one.
    """
    kind, _, task = name.partition(":")
    if kind in _PLANNED:
        raise ValueError(f"The environment {name!r} is not built yet.")
    if name != "catch" and (kind not in _TASKS or task not in _TASKS[kind]()):
        raise ValueError(f"Unknown environment {name!r}: {_advice(kind, task)}")
    if kind == "gym":
        gym.check(task)


def _advice(kind: str, task: str) -> str:
    """Names the nearest right name, or else the forms that a name can take."""
    kinds = difflib.get_close_matches(kind, ["catch", *_TASKS], n=1)
    if kinds == ["catch"]:
        return "did you mean catch?"
    tasks = difflib.get_close_matches(task, _TASKS[kinds[0]](), n=1) if kinds else []
    if tasks:
        return f"did you mean {kinds[0]}:{tasks[0]}?"
    return (
        f"expected catch, memory:<{'|'.join(memory.TASKS)}>, atari:<game in snake_case>, or "
        "gym:<id known to gymnasium>."
    )


def make_environment_spec(name: str, *, full_action_space: bool = True) -> specs.EnvironmentSpec:
    """Describes one environment of a name in Acme's terms.

    Args:
        name: for example `atari:pong`.
        full_action_space: as for `make`.

    Raises:
        ValueError: the name is unknown.
    """
    env = make(name, 1, seed=0, full_action_space=full_action_space)
    observations, actions = env.single_observation_space, env.single_action_space
    env.close()
    assert isinstance(actions, spaces.Discrete)
    return specs.EnvironmentSpec(
        observations=_array_spec(observations),
        actions=specs.DiscreteArray(int(actions.n), dtype=np.int32, name="action"),
        rewards=specs.Array((), np.float32, name="reward"),
        discounts=specs.BoundedArray((), np.float32, 0.0, 1.0, name="discount"),
    )


def _array_spec(space: spaces.Space) -> specs.Array:
    assert isinstance(space, spaces.Box)
    if space.is_bounded():
        return specs.BoundedArray(
            space.shape, space.dtype, space.low, space.high, name="observation"
        )
    return specs.Array(space.shape, space.dtype, name="observation")
