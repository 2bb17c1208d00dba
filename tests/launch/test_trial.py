"""A run tries somebody's environment before any of its processes starts."""

import importlib.util
import os
import pathlib
import re
import signal
import sys
from collections.abc import Callable

import psutil
import pytest
from gymnasium import spaces

from environments import gym
from launch import trial
from tests.forks import fork
from tests.launch.runs import all_gone
from tests.patience import wait_for

TASKS = """
import os, pathlib, subprocess, time, gymnasium
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

class LeavesHelper(Task):
    def reset(self, *, seed=None, options=None):
        helper = subprocess.Popen(["sleep", "600"], start_new_session=True)
        pathlib.Path(__file__).with_suffix(".pid").write_text(str(helper.pid))
        return 0, {}

class Hangs(LeavesHelper):
    def step(self, action):
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
def _forgets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gym, "_known", dict(gym._known))


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


@pytest.mark.parametrize("task", ["Hangs", "LeavesHelper"])
def test_whatever_it_has_started_ends_with_the_trial(task: str, module: str) -> None:
    found = importlib.util.find_spec(module)
    assert found is not None
    helper = pathlib.Path(found.origin or "").with_suffix(".pid")
    for seconds in (4.0, 16.0, 64.0):  # a slow machine has only begun by then
        gym.forget(f"{module}:{task}")
        trial.try_each(f"{module}:{task}", seconds if task == "Hangs" else None)
        if helper.exists():
            break
    if task == "Hangs":
        said = rf"stepped once within {seconds:g} seconds; .* --hang_seconds\."
        with pytest.raises(ValueError, match=said):
            gym.describe(f"{module}:{task}")
    assert not psutil.pid_exists(int(helper.read_text()))


def test_a_trial_ends_with_the_process_that_tries_however_that_ends(module: str) -> None:
    found = importlib.util.find_spec(module)
    assert found is not None
    said = pathlib.Path(found.origin or "").with_suffix(".pid")
    pid = fork(lambda: trial.try_each(f"{module}:Hangs", 1e6))
    wait_for(lambda: said.exists() and said.read_text())
    helper = psutil.Process(int(said.read_text()))  # in a session of its own
    (child,) = psutil.Process(pid).children()
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    assert all_gone([child])
    helper.kill()
