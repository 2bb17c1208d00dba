"""What an engine has in common with others, and what it does to its process and its files."""

import contextlib
import os
import shutil
import signal
import tempfile
from pathlib import Path

import pytest

from tests.environments.lab.play import (
    CRASH,
    FORWARD,
    LANGUAGE,
    MAZE,
    SIZE,
    STAY,
    TURN,
    digest,
    make_lab,
)


def the_first_episode_of_an_engine_can_be_repeated() -> None:
    actions = [FORWARD, TURN, FORWARD, STAY] * 8
    digests = []
    for seed in (5, 5, 6):
        lab = make_lab(LANGUAGE)
        lab.reset(seed=seed)
        digests.append(digest(lab, actions))
        lab.close()
    assert digests[0] == digests[1] != digests[2]


def a_later_episode_of_an_engine_is_another() -> None:
    lab = make_lab()
    digests = []
    for seed in (5, 6, 5):
        lab.reset(seed=seed)
        digests.append(digest(lab, [FORWARD, TURN] * 10))
    assert len(set(digests)) == 3


def forks_without_seeds_play_the_same_episode() -> None:
    import deepmind_lab

    assert deepmind_lab.Lab
    reading, writing = os.pipe()
    for _ in range(2):
        child = os.fork()
        if not child:
            lab = make_lab(LANGUAGE)
            lab.reset()
            os.write(writing, digest(lab, [FORWARD, TURN] * 4))
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
    first, second = os.read(reading, 32), os.read(reading, 32)
    assert first == second


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
            lab = make_lab(MAZE, level_cache=cache, temp_folder=folder)
            lab.reset(seed=1)
            assert os.listdir(folder)
            digests.append(digest(lab, [FORWARD] * 4))
            lab.close()
    (key,) = cache.maps
    assert cache.asked == [("fetch", key), ("write", key), ("fetch", key)]
    assert "/" not in key
    assert digests[0] == digests[1]

    def broken(key: str, pk3_path: str) -> bool:
        raise KeyError("broken cache")

    cache.fetch = broken  # type: ignore[method-assign]
    lab = make_lab(MAZE, level_cache=cache)
    with pytest.raises(KeyError, match="broken cache"):
        lab.reset(seed=1)


def a_killed_process_leaves_its_files_behind() -> None:
    with tempfile.TemporaryDirectory() as folder:
        os.environ["TMPDIR"] = folder
        tempfile.tempdir = None
        own = Path(folder) / "own"
        for chosen, expected in ((None, "dmlab_temp_folder_*"), (str(own), "own")):
            child = os.fork()
            if not child:
                lab = make_lab(temp_folder=chosen) if chosen else make_lab()
                lab.reset(seed=1)
                os.kill(os.getpid(), signal.SIGKILL)
            assert os.waitpid(child, 0)[1] == signal.SIGKILL
            assert len(list(Path(folder).iterdir())) == len(list(Path(folder).glob(expected)))
            for left in Path(folder).glob(expected):
                shutil.rmtree(left)
        make_lab().close()
        assert not list(Path(folder).iterdir())


def an_engine_that_ends_ends_its_process() -> None:
    """Nothing is raised, whether it crashes or quits."""
    for command, expected in ((CRASH, signal.SIGSEGV), ("+quit", 0)):
        child = os.fork()
        if not child:
            with contextlib.suppress(BaseException):
                make_lab(config=SIZE | {"appendCommand": command}).reset(seed=1)
            os._exit(77)  # not reached
        assert os.waitpid(child, 0)[1] == expected
