"""DeepMind Lab's Python module, as far as this project leans on it: checks of stand-in and engine.

`test_module.py` runs each of `CHECKS` in a process of its own, by
`python -m tests.environments.dmlab.module <name>`: an engine may end its process.
"""

import contextlib
import hashlib
import inspect
import os
import shutil
import signal
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

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


def _make_lab(level: str = FIXED, config: Any = SIZE, **arguments: Any) -> Any:
    """An engine in this process; small pictures and words."""
    import deepmind_lab  # here, since whoever lists the checks may not have it

    return deepmind_lab.Lab(level, OBSERVATIONS, config, **arguments)


def _digest(lab: Any, actions: list[np.ndarray]) -> bytes:
    """Plays, and sums up every reward, picture and word."""
    seen = hashlib.sha256()
    for action in actions:
        seen.update(str(lab.step(action, num_steps=4)).encode())
        observations = lab.observations()
        seen.update(observations["RGB_INTERLEAVED"].tobytes() + observations["INSTR"].encode())
    return seen.digest()


def wrong_values_raise_before_anything_runs() -> None:
    for words, arguments in (
        ("Level not found", dict(level="missing_level")),
        ("multiple of 4", dict(config=SIZE | {"width": "90"})),
        ("nonsense", dict(config=SIZE | {"nonsense": "1"})),
    ):
        with pytest.raises(RuntimeError, match=words):
            _make_lab(**arguments)
    with pytest.raises(TypeError):
        _make_lab(config={"width": 96})


def a_held_out_level_needs_leave() -> None:
    with pytest.raises(RuntimeError, match="only be used during evaluation"):
        _make_lab(HELD_OUT)
    assert _make_lab(HELD_OUT, SIZE | {"allowHoldOutLevels": "true"}).reset(seed=1) is True


def reset_wants_a_python_seed() -> None:
    lab = _make_lab()
    assert lab.is_running() is False
    for seed in (np.int32(1), np.int64(1), "1", 1.0):
        with pytest.raises(ValueError, match="'seed' must be int or None"):
            lab.reset(seed=seed)
    assert lab.reset(seed=2**31 - 1) is True
    assert lab.is_running() is True


def step_returns_the_summed_reward_of_its_frames() -> None:
    once, apart = _make_lab(), _make_lab()
    for lab in (once, apart):
        lab.reset(seed=3)
    rewards = []
    for step in range(100):
        action = FORWARD if step % 5 else TURN
        reward = once.step(action, num_steps=4)
        assert type(reward) is float
        assert reward == sum(apart.step(action) for _ in range(4))
        rewards.append(reward)
    assert any(rewards)


def actions_are_seven_c_ints() -> None:
    lab = _make_lab()
    lab.reset(seed=1)
    with pytest.raises(TypeError):
        lab.step([0] * 7)
    with pytest.raises(ValueError, match="must have dtype"):
        lab.step(np.zeros(7, np.int64))
    with pytest.raises(ValueError, match="must have shape"):
        lab.step(np.zeros(6, np.intc))


def observations_are_new_arrays_and_plain_words() -> None:
    lab = _make_lab()
    lab.reset(seed=1)
    image, words = (lab.observations()[name] for name in OBSERVATIONS)
    assert (type(image), image.dtype, image.shape) == (np.ndarray, np.uint8, (72, 96, 3))
    assert words == ""
    copy = image.copy()
    image[:] = 0
    np.testing.assert_array_equal(lab.observations()["RGB_INTERLEAVED"], copy)
    lab.step(TURN, num_steps=4)
    assert (lab.observations()["RGB_INTERLEAVED"] != copy).any()


def the_instruction_changes_within_an_episode() -> None:
    lab = _make_lab(LANGUAGE)
    lab.reset(seed=1)
    rng = np.random.default_rng(0)
    heard: set[str] = set()
    for _ in range(800):  # 53 of the episode's 60 s
        heard.add(lab.observations()["INSTR"])
        lab.step(TURN * rng.integers(-1, 2) + FORWARD, num_steps=4)
    assert len(heard) > 1
    assert all(words.split() for words in heard)


def an_episode_ends_with_a_reward_and_nothing_to_see() -> None:
    lab = _make_lab()
    lab.reset(seed=1)
    steps = 0
    while lab.is_running():
        assert type(lab.step(STAY, num_steps=7)) is float
        steps += 1
    assert steps == -(-20 * 60 // 7)
    for forbidden in (lab.observations, lambda: lab.step(STAY)):
        with pytest.raises(RuntimeError, match="wrong status"):
            forbidden()
    assert lab.reset(seed=2) is True
    assert lab.is_running()
    lab.observations()


def the_first_episode_of_an_engine_alone_can_be_repeated() -> None:
    actions = [FORWARD, TURN, FORWARD, STAY] * 8
    digests = []
    for seed in (5, 5, 6):
        lab = _make_lab(LANGUAGE)
        lab.reset(seed=seed)
        digests.append(_digest(lab, actions))
    assert digests[0] == digests[1] != digests[2]
    lab.reset(seed=5)
    assert _digest(lab, actions) not in digests
    lab.close()


class _Cache:
    """Keeps maps in memory and notes what it is asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []
        self.maps: dict[str, bytes] = {}

    def fetch(self, key: str, pk3_path: str) -> bool:
        self.asked.append(("fetch", key))
        if key in self.maps:
            Path(pk3_path).write_bytes(self.maps[key])
        return key in self.maps

    def write(self, key: str, pk3_path: str) -> None:
        self.asked.append(("write", key))
        self.maps[key] = Path(pk3_path).read_bytes()


def a_level_cache_saves_the_compiler() -> None:
    cache = _Cache()
    digests = []
    for _ in range(2):
        with tempfile.TemporaryDirectory() as folder:
            lab = _make_lab(MAZE, level_cache=cache, temp_folder=folder)
            lab.reset(seed=1)
            assert os.listdir(folder)
            digests.append(_digest(lab, [FORWARD] * 4))
            lab.close()
    (key,) = cache.maps
    assert cache.asked == [("fetch", key), ("write", key), ("fetch", key)]
    assert "/" not in key
    assert digests[0] == digests[1]


def a_killed_process_leaves_its_files_where_it_was_told_to() -> None:
    own = Path(tempfile.mkdtemp()) / "own"
    child = os.fork()
    if not child:
        _make_lab(temp_folder=str(own)).reset(seed=1)
        os.kill(os.getpid(), signal.SIGKILL)
    assert os.waitpid(child, 0)[1] == signal.SIGKILL
    assert list(own.parent.iterdir()) == [own]
    shutil.rmtree(own.parent)


def an_engine_that_ends_ends_its_process() -> None:
    """Nothing is raised, whether it crashes or quits."""
    for command, expected in ((CRASH, signal.SIGSEGV), ("+quit", 0)):
        child = os.fork()
        if not child:
            with contextlib.suppress(BaseException):
                _make_lab(config=SIZE | {"appendCommand": command}).reset(seed=1)
            os._exit(77)  # not reached
        assert os.waitpid(child, 0)[1] == expected


CHECKS = {
    name: function
    for name, function in inspect.getmembers(sys.modules[__name__], inspect.isfunction)
    if function.__module__ == __name__ and not name.startswith("_")
}

if __name__ == "__main__":
    CHECKS[sys.argv[1]]()
