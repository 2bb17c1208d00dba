"""What DeepMind Lab's Python module does: checks that the stand-in and the real one both pass.

`test_dmlab_module.py` runs each of `CHECKS` in a process of its own, by
`python -m tests.environments.lab_contract <name>`: an engine may end its process.
"""

import contextlib
import hashlib
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

FIXED = "seekavoid_arena_01"  # one map, 20 s, nothing said
LANGUAGE = "contributed/dmlab30/language_select_described_object"
MAZE = "contributed/dmlab30/explore_goal_locations_small"  # a map for each seed
HELD_OUT = "contributed/dmlab30/rooms_collect_good_objects_test"
CRASH = "+set developer 1 +crash"  # what the engine's console calls it
SIZE = {"width": "96", "height": "72"}
OBSERVATIONS = ["RGB_INTERLEAVED", "INSTR"]

STAY = np.zeros(7, np.intc)
FORWARD = np.array([0, 0, 0, 1, 0, 0, 0], np.intc)
TURN = np.array([20, 0, 0, 0, 0, 0, 0], np.intc)

CHECKS: dict[str, Callable[[], None]] = {}


def _check(function: Callable[[], None]) -> Callable[[], None]:
    CHECKS[function.__name__] = function
    return function


def _lab(level: str = FIXED, config: Any = SIZE, **arguments: Any) -> Any:
    import deepmind_lab  # here, since whoever lists the checks may not have it

    return deepmind_lab.Lab(level, arguments.pop("observations", OBSERVATIONS), config, **arguments)


def _play(lab: Any, actions: list[np.ndarray]) -> bytes:
    """A digest of every reward, picture and word."""
    digest = hashlib.sha256()
    for action in actions:
        digest.update(str(lab.step(action, num_steps=4)).encode())
        seen = lab.observations()
        digest.update(seen["RGB_INTERLEAVED"].tobytes() + seen["INSTR"].encode())
    return digest.digest()


@_check
def arguments_have_one_type_each() -> None:
    for arguments in (
        dict(observations=tuple(OBSERVATIONS)),
        dict(observations=None),
        dict(config=["width"]),
        dict(config={"width": 96}),
        dict(level=3),
    ):
        with pytest.raises(TypeError):
            _lab(**arguments)


@_check
def wrong_values_raise_before_anything_runs() -> None:
    for error, words, arguments in (
        (ValueError, "Unknown observation 'DEPTH'", dict(observations=["DEPTH"])),
        (RuntimeError, "Level not found", dict(level="missing_level")),
        (RuntimeError, "multiple of 4", dict(config=SIZE | {"width": "90"})),
        (RuntimeError, "multiple of 4", dict(config=SIZE | {"height": "0"})),
        (RuntimeError, "nonsense", dict(config=SIZE | {"nonsense": "1"})),
        (RuntimeError, "renderer", dict(renderer="watercolour")),
    ):
        with pytest.raises(error, match=words):
            _lab(**arguments)


@_check
def a_held_out_level_needs_leave() -> None:
    with pytest.raises(RuntimeError, match="only be used during evaluation"):
        _lab(HELD_OUT)
    for level in (HELD_OUT, FIXED):  # elsewhere the leave changes nothing
        assert _lab(level, SIZE | {"allowHoldOutLevels": "true"}).reset(seed=1) is True


@_check
def specs_name_the_actions_and_observations() -> None:
    lab = _lab()
    assert [(action["name"], action["min"], action["max"]) for action in lab.action_spec()] == [
        ("LOOK_LEFT_RIGHT_PIXELS_PER_FRAME", -512, 512),
        ("LOOK_DOWN_UP_PIXELS_PER_FRAME", -512, 512),
        ("STRAFE_LEFT_RIGHT", -1, 1),
        ("MOVE_BACK_FORWARD", -1, 1),
        ("FIRE", 0, 1),
        ("JUMP", 0, 1),
        ("CROUCH", 0, 1),
    ]
    specs = {spec["name"]: (spec["dtype"], spec["shape"]) for spec in lab.observation_spec()}
    assert specs["RGB_INTERLEAVED"] == (np.uint8, (72, 96, 3))
    assert specs["INSTR"] == (str, ())


@_check
def nothing_can_be_done_before_the_first_reset() -> None:
    lab = _lab()
    assert lab.is_running() is False
    with pytest.raises(RuntimeError, match="wrong status"):
        lab.step(STAY)
    with pytest.raises(RuntimeError, match="wrong status"):
        lab.observations()


@_check
def reset_returns_true_and_wants_a_python_seed() -> None:
    lab = _lab()
    for seed in (np.int32(1), np.int64(1), "1", 1.0):
        with pytest.raises(ValueError, match="'seed' must be int or None"):
            lab.reset(seed=seed)
    assert not lab.is_running()
    assert lab.reset(seed=1) is True
    assert lab.reset(seed=2**31 - 1) is True
    assert lab.reset(episode=3, seed=None) is True
    assert lab.is_running() is True


@_check
def the_first_episode_of_an_engine_can_be_repeated() -> None:
    actions = [FORWARD, TURN, FORWARD, STAY] * 8
    digests = []
    for seed in (5, 5, 6):
        lab = _lab(LANGUAGE)
        lab.reset(seed=seed)
        digests.append(_play(lab, actions))
        lab.close()
    assert digests[0] == digests[1] != digests[2]


@_check
def a_later_episode_of_an_engine_is_another() -> None:
    lab = _lab()
    digests = []
    for seed in (5, 6, 5):
        lab.reset(seed=seed)
        digests.append(_play(lab, [FORWARD, TURN] * 10))
    assert len(set(digests)) == 3


@_check
def forks_without_seeds_play_the_same_episode() -> None:
    import deepmind_lab

    assert deepmind_lab.Lab
    reading, writing = os.pipe()
    for _ in range(2):
        child = os.fork()
        if not child:
            lab = _lab(LANGUAGE)
            lab.reset()
            os.write(writing, _play(lab, [FORWARD, TURN] * 4))
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
    first, second = os.read(reading, 32), os.read(reading, 32)
    assert first == second


@_check
def step_returns_the_summed_reward_of_its_frames() -> None:
    once, apart = _lab(), _lab()
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
    assert once.num_steps() == apart.num_steps() == 400


@_check
def actions_are_seven_c_ints() -> None:
    lab = _lab()
    lab.reset(seed=1)
    with pytest.raises(TypeError):
        lab.step([0] * 7)
    for action in (np.zeros(7, np.int64), np.zeros(7, np.float32), np.zeros(7, np.int16)):
        with pytest.raises(ValueError, match="must have dtype"):
            lab.step(action)
    for action in (np.zeros(6, np.intc), np.zeros((1, 7), np.intc), np.intc(0) * STAY[0:1]):
        with pytest.raises(ValueError, match="must have shape"):
            lab.step(action)
    assert lab.num_steps() == 0


@_check
def a_strided_action_is_misread() -> None:
    """Not what the view shows but what lies behind its first number in memory is acted."""
    memory = np.zeros(14, np.intc)
    memory[0], memory[3], memory[6] = 20, 1, 0
    memory[8] = 1
    view = memory[::2]
    assert not np.array_equal(view, memory[:7])
    digests = []
    for action in (view, memory[:7], view.copy()):
        lab = _lab()
        lab.reset(seed=1)
        digests.append(_play(lab, [action] * 8))
        lab.close()
    assert digests[0] == digests[1] != digests[2]


@_check
def bounds_of_actions_are_not_checked() -> None:
    lab = _lab()
    lab.reset(seed=1)
    lab.step(np.array([700, 0, 0, 5, 0, 0, 0], np.intc))
    assert lab.is_running()


@_check
def observations_are_new_arrays_and_plain_words() -> None:
    lab = _lab()
    lab.reset(seed=1)
    seen = lab.observations()
    assert list(seen) == OBSERVATIONS
    image = seen["RGB_INTERLEAVED"]
    assert (type(image), image.dtype, image.shape) == (np.ndarray, np.uint8, (72, 96, 3))
    assert image.std() > 1
    assert (type(seen["INSTR"]), seen["INSTR"]) == (str, "")
    copy = image.copy()
    image[:] = 0
    np.testing.assert_array_equal(lab.observations()["RGB_INTERLEAVED"], copy)
    lab.step(TURN, num_steps=4)
    assert (lab.observations()["RGB_INTERLEAVED"] != copy).any()


@_check
def the_instruction_changes_within_an_episode() -> None:
    lab = _lab(LANGUAGE)
    lab.reset(seed=1)
    rng = np.random.default_rng(0)
    heard: set[str] = set()
    for _ in range(800):  # 53 of the episode's 60 s
        heard.add(lab.observations()["INSTR"])
        lab.step(TURN * rng.integers(-1, 2) + FORWARD, num_steps=4)
    assert lab.is_running()
    assert len(heard) > 1
    assert all(words.split() for words in heard)


@_check
def an_episode_ends_with_a_reward_and_nothing_to_see() -> None:
    lab = _lab()
    lab.reset(seed=1)
    steps = 0
    while lab.is_running():
        assert type(lab.step(STAY, num_steps=7)) is float
        steps += 1
    assert steps == -(-20 * 60 // 7)
    assert lab.num_steps() == 7 * steps > 20 * 60  # frames that were not played count too
    for forbidden in (lab.observations, lambda: lab.step(STAY)):
        with pytest.raises(RuntimeError, match="wrong status"):
            forbidden()
    assert lab.reset(seed=2) is True
    assert lab.is_running()
    assert lab.num_steps() == 0
    lab.step(STAY, num_steps=4)
    lab.observations()


@_check
def a_closed_engine_does_nothing() -> None:
    lab = _lab()
    lab.reset(seed=1)
    assert lab.close() is True
    assert lab.close() is False
    assert lab.is_running() is False
    with pytest.raises(RuntimeError, match="wrong status"):
        lab.step(STAY)
    with pytest.raises(RuntimeError, match="wrong status"):
        lab.observations()


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


@_check
def a_level_cache_saves_the_compiler() -> None:
    cache = _Cache()
    digests = []
    for _ in range(2):
        with tempfile.TemporaryDirectory() as folder:
            lab = _lab(MAZE, level_cache=cache, temp_folder=folder)
            lab.reset(seed=1)
            assert os.listdir(folder)
            digests.append(_play(lab, [FORWARD] * 4))
            lab.close()
    (key,) = cache.maps
    assert cache.asked == [("fetch", key), ("write", key), ("fetch", key)]
    assert "/" not in key
    assert digests[0] == digests[1]

    def broken(key: str, pk3_path: str) -> bool:
        raise KeyError("broken cache")

    cache.fetch = broken  # type: ignore[method-assign]
    lab = _lab(MAZE, level_cache=cache)
    with pytest.raises(KeyError, match="broken cache"):
        lab.reset(seed=1)


@_check
def a_killed_process_leaves_its_files_behind() -> None:
    with tempfile.TemporaryDirectory() as folder:
        os.environ["TMPDIR"] = folder
        tempfile.tempdir = None
        own = Path(folder) / "own"
        for chosen, expected in ((None, "dmlab_temp_folder_*"), (str(own), "own")):
            child = os.fork()
            if not child:
                lab = _lab(temp_folder=chosen) if chosen else _lab()
                lab.reset(seed=1)
                os.kill(os.getpid(), signal.SIGKILL)
            assert os.waitpid(child, 0)[1] == signal.SIGKILL
            assert len(list(Path(folder).iterdir())) == len(list(Path(folder).glob(expected)))
            for left in Path(folder).glob(expected):
                shutil.rmtree(left)
        _lab().close()
        assert not list(Path(folder).iterdir())


@_check
def an_engine_that_ends_ends_its_process() -> None:
    """Nothing is raised, whether it crashes or quits."""
    for command, expected in ((CRASH, signal.SIGSEGV), ("+quit", 0)):
        child = os.fork()
        if not child:
            with contextlib.suppress(BaseException):
                _lab(config=SIZE | {"appendCommand": command}).reset(seed=1)
            os._exit(77)  # not reached
        assert os.waitpid(child, 0)[1] == expected


if __name__ == "__main__":
    CHECKS[sys.argv[1]]()
