"""Finds, kills and plays engines for the tests of `environments.dmlab`."""

import contextlib
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import psutil
import pytest

from environments.dmlab import environment, process
from environments.dmlab.engine import Engine
from environments.dmlab.environment import DMLab

FIXED = "seekavoid_arena_01"
LANGUAGE = "language_select_described_object"
CRASH = "+set developer 1 +crash"  # what the engine's console calls it
FORWARD, LEFT, RIGHT = 0, 4, 5  # of the 15 actions

MODULES = ["fake", "real"] if environment.installed() else ["fake"]
"""The stand-in and, where it is installed, the real one."""

Make = Callable[..., DMLab]
stand_in_only = pytest.mark.parametrize("make_dmlab", ["fake"], indirect=True)


def running() -> list[psutil.Process]:
    """The engines that this process has started, oldest first."""
    children = psutil.Process().children()
    return sorted(filter(_is_engine, children), key=psutil.Process.create_time)


def _is_engine(child: psutil.Process) -> bool:
    with contextlib.suppress(psutil.Error):  # another test's child that has ended
        return process.__name__ in child.cmdline()
    return False


def kill(engine: psutil.Process) -> None:
    """Kills an engine and waits until all of its doors are shut."""
    engine.kill()
    while engine.status() != psutil.STATUS_ZOMBIE:
        time.sleep(0.01)


def given_to(method: str, monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    """The arguments of every call of a method of `Engine` from now on."""
    call, given = getattr(Engine, method), []

    def noted(engine: Engine, *arguments: Any) -> Any:
        given.append(arguments)
        return call(engine, *arguments)

    monkeypatch.setattr(Engine, method, noted)
    return given


def play(env: DMLab, steps: int, **reset: Any) -> list[np.ndarray]:
    """Every observation and reward of walking about, as arrays [N, ...]."""
    seen, _ = env.reset(**reset)
    arrays = list(seen.values())
    for step in range(steps):
        action = (FORWARD, RIGHT, FORWARD, LEFT)[step % 4]
        seen, rewards, *_ = env.step(np.full(env.num_envs, action))
        arrays += [*seen.values(), rewards]
    return arrays


def same(some: list[np.ndarray], others: list[np.ndarray]) -> bool:
    """Compares two runs of `play` number by number."""
    return all(np.array_equal(one, other) for one, other in zip(some, others, strict=True))
