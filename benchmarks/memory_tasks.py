"""Tasks of memory by other packages, as `--env=benchmarks.memory_tasks:<name>` takes them.

`memory_len_1` to `memory_len_100` and `memory_size_1` to `memory_size_40` are bsuite's (Osband et
al. 2020): to remember a bit for so many steps, and so many bits for two.
"""

import importlib
import math
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

# As bsuite's sweeps have them.
_UP_TO_25 = (*range(1, 11), 12, 14, 17, 20, 25)
LENGTHS = (*_UP_TO_25, *range(30, 101, 10))  # steps before the question
SIZES = (*_UP_TO_25, 30, 40)  # bits


def memory_s9() -> gymnasium.Env[Any, Any]:
    """MiniGrid-MemoryS9 for an agent that sees 3 x 3 fields, each as one-hot vectors.

    With its own view of 7 x 7 it sees the object at the end beside the one at the beginning. Its
    actions are to turn left, to turn right and to go on: there is nothing to pick up.
    """
    importlib.import_module("minigrid")
    wrappers = importlib.import_module("minigrid.wrappers")
    env = gymnasium.make("MiniGrid-MemoryS9-v0", agent_view_size=3)
    seen = wrappers.ImgObsWrapper(wrappers.OneHotPartialObsWrapper(env))
    size = math.prod(seen.observation_space.shape)
    floats = gymnasium.wrappers.TransformObservation(
        seen,
        lambda fields: fields.astype(np.float32).ravel(),
        spaces.Box(0.0, 1.0, (size,), np.float32),
    )
    return gymnasium.wrappers.TransformAction(floats, lambda action: action, spaces.Discrete(3))


def __getattr__(name: str) -> Callable[[], Any]:
    experiment, _, number = name.rpartition("_")
    known = {"memory_len": LENGTHS, "memory_size": SIZES}.get(experiment, ())
    if not (number.isdigit() and int(number) in known):
        raise AttributeError(f"{__name__} has no {name}.")
    bsuite_id = f"{experiment}/{known.index(int(number))}"
    return lambda: importlib.import_module("bsuite").load_from_id(bsuite_id)
