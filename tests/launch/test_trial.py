"""What a run finds out about somebody's environment before any of its processes starts."""

import re
import sys
import time
from collections.abc import Callable, Iterator

import psutil
import pytest
from gymnasium import spaces

from environments import gym
from launch import trial

TASKS = """
import os, subprocess, sys, time, gymnasium
from gymnasium import spaces

MADE_IN = []

class Task(gymnasium.Env):
    observation_space = spaces.Discrete(2)
    action_space = spaces.Discrete(2, start=3)

    def __init__(self):
        MADE_IN.append(os.getpid())

    def reset(self, *, seed=None, options=None):
        return 0, {}

    def step(self, action):
        return 1, 0.0, False, False, {}

class Hangs(Task):
    def reset(self, *, seed=None, options=None):
        subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)", "of-the-hanging"])
        time.sleep(600)

class Dies(Task):
    def step(self, action):
        os.kill(os.getpid(), 9)

class Leaves(Task):
    def __init__(self):
        raise SystemExit(3)

class Raises(Task):
    def step(self, action):
        raise NotImplementedError
"""


@pytest.fixture(autouse=True)
def _forgets() -> Iterator[None]:
    known = dict(gym._known)
    yield
    gym._known.clear()
    gym._known.update(known)


@pytest.fixture
def module(write_module: Callable[[str], str]) -> str:
    return write_module(TASKS)


def test_a_task_is_described_by_a_child_and_never_made_here(module: str) -> None:
    name = f"{module}:Task"
    trial.try_each(f"{name},catch,nobody_knows_this", None)
    assert name not in gym._known  # a name is wrong, which others say
    trial.try_each(f"{name},catch", None)
    assert gym.describe(name).actions == spaces.Discrete(2)
    assert sys.modules[module].MADE_IN == []


@pytest.mark.parametrize(
    ("task", "said"),
    [
        ("Dies", "ended its process, with code -9, when it was tried."),
        ("Leaves", "ended its process, with code 3, when it was tried."),
        ("Raises", "makes an environment that cannot be used: NotImplementedError."),
        ("Missing", "has no 'Missing'"),
    ],
)
def test_whatever_it_does_becomes_a_sentence(task: str, said: str, module: str) -> None:
    trial.try_each(f"{module}:{task}", None)
    with pytest.raises(ValueError, match=re.escape(said)) as told:
        gym.describe(f"{module}:{task}")
    assert "\n" not in str(told.value)


def test_what_hangs_is_killed_with_all_that_it_has_started(module: str) -> None:
    begun = time.monotonic()
    trial.try_each(f"{module}:Hangs", 1.5)
    assert time.monotonic() - begun < 60
    with pytest.raises(ValueError, match=r"stepped once within 1.5 seconds; .* --hang_seconds\."):
        gym.describe(f"{module}:Hangs")
    left = [process.info["cmdline"] or [] for process in psutil.process_iter(["cmdline"])]
    assert not any("of-the-hanging" in arguments for arguments in left)
