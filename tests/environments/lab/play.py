"""Engines and how to play in them, for the checks of `calls` and `processes`."""

import hashlib
from typing import Any

import numpy as np

FIXED = "seekavoid_arena_01"  # one map, 20 s, nothing said
LANGUAGE = "contributed/dmlab30/language_select_described_object"
MAZE = "contributed/dmlab30/explore_goal_locations_small"  # a map for each seed
HELD_OUT = "contributed/dmlab30/rooms_collect_good_objects_test"
SIZE = {"width": "96", "height": "72"}
CRASH = "+set developer 1 +crash"  # what the engine's console calls it
OBSERVATIONS = ["RGB_INTERLEAVED", "INSTR"]

STAY = np.zeros(7, np.intc)
FORWARD = np.array([0, 0, 0, 1, 0, 0, 0], np.intc)
TURN = np.array([20, 0, 0, 0, 0, 0, 0], np.intc)


def make_lab(level: str = FIXED, config: Any = SIZE, **arguments: Any) -> Any:
    """An engine in this process; small pictures and words unless it is told otherwise."""
    import deepmind_lab  # here, since whoever lists the checks may not have it

    return deepmind_lab.Lab(level, arguments.pop("observations", OBSERVATIONS), config, **arguments)


def digest(lab: Any, actions: list[np.ndarray]) -> bytes:
    """Plays, and sums up every reward, picture and word."""
    seen = hashlib.sha256()
    for action in actions:
        seen.update(str(lab.step(action, num_steps=4)).encode())
        observations = lab.observations()
        seen.update(observations["RGB_INTERLEAVED"].tobytes() + observations["INSTR"].encode())
    return seen.digest()
