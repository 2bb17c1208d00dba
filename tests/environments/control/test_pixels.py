"""Pictures of control, where something draws: EGL or OSMesa."""

import contextlib
import subprocess
import sys

import numpy as np
import pytest

from environments import screens, suites
from environments.dm import make_environment_spec
from tests.environments.control import renderers
from tests.patience import PATIENCE

TASK = "control-pixels:cartpole/swingup"

# What a run does: names are checked and an environment is made, then its nodes are forked.
_FORKED = f"""
import logging
import multiprocessing
from absl import logging as absl_logging
from environments import suites
from environments.dm import make_environment_spec

absl_logging.set_verbosity(absl_logging.INFO)

def play(name):
    env = suites.make(name, 1, seed=0)
    env.reset()
    logging.getLogger("absl").info("the log goes on")
    print(env.step(env.action_space.sample())[0].std() > 0, flush=True)

suites.check({TASK!r})
make_environment_spec({TASK!r})
make_environment_spec("control:cartpole/swingup")
for _ in range(2):
    child = multiprocessing.get_context("fork").Process(target=play, args=({TASK!r},))
    child.start()
    child.join()
    print(child.exitcode)
    child.kill()
"""


@pytest.fixture(autouse=True)
def _renderer(monkeypatch: pytest.MonkeyPatch) -> None:
    renderers.choose(monkeypatch)


def _first(full_rendering: bool) -> np.ndarray:
    with contextlib.closing(suites.make(TASK, 1, seed=0, full_rendering=full_rendering)) as env:
        pictures: np.ndarray = env.reset()[0]
        return pictures[0].copy()


def _picture(screen: screens.Screen) -> np.ndarray:
    pictures = screen.env.render()
    assert pictures is not None
    return np.asarray(pictures[0])


def test_an_agent_sees_the_body_move() -> None:
    spec = make_environment_spec(TASK).observations
    assert (spec.shape, spec.dtype) == ((84, 84, 3), np.uint8)
    with contextlib.closing(suites.make(TASK, 2, seed=0)) as env:
        first = env.reset()[0].copy()
        for _ in range(3):
            seen = env.step(env.action_space.sample())[0]
    assert (seen.shape, seen.dtype) == ((2, 84, 84, 3), np.uint8)
    assert all((before != after).any() for before, after in zip(first, seen, strict=True))


def test_a_terrain_takes_a_renderer_from_features_too() -> None:
    with contextlib.closing(suites.make("control:quadruped/escape", 1, seed=0)) as env:
        env.reset()
        assert "lost" not in env.step(env.action_space.sample())[-1]


def test_the_same_seed_gives_the_same_pictures_and_full_rendering_others() -> None:
    np.testing.assert_array_equal(_first(False), _first(False))
    full, fast = (_first(how).astype(np.int64) for how in (True, False))
    assert 0 < np.abs(full - fast).mean() < 32


@pytest.mark.parametrize("name", ["control:cartpole/swingup", TASK])
def test_a_task_can_be_watched_by_people_after_it_was_played(name: str) -> None:
    with contextlib.closing(suites.make("control:cartpole/swingup", 1, seed=0)) as played:
        played.reset()
        screen = screens.make(name, seed=0)
        with contextlib.closing(screen.env):
            screen.env.reset()
            before = _picture(screen)
            action = screen.env.action_space.sample()
            screen.env.step(action)
            after = _picture(screen)
    assert (before.shape, before.dtype, screen.frames_per_second) == ((240, 320, 3), np.uint8, 100)
    assert (before != after).any()
    assert screen.action_name(action[0]) == f"{action[0, 0]:+.2f}"


def test_forks_of_a_process_that_has_checked_and_made_one_draw_and_tell_nothing() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _FORKED], capture_output=True, text=True, timeout=PATIENCE
    )
    assert done.stdout.split() == ["True", "0"] * 2, done.stderr
    assert "the log goes on" in done.stderr
    assert "OpenGL" not in done.stderr  # of the backends that are tried
