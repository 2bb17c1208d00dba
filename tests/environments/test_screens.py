"""People see what the agent sees, in more and better pixels, of the same play."""

import contextlib
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import VectorEnv
from PIL import Image

from environments import screens, suites
from tests.environments.dmlab.engines import FIXED
from tests.environments.dmlab.fakes import deepmind_lab

SEED = 5
PICTURES = {  # with the steps of a second
    "catch": ((10, 5, 3), 4),
    "memory:recall": ((1, 5, 3), 4),
    "memory:cartpole": ((400, 600, 3), 50),
    "atari:breakout": ((210, 160, 3), 15),
    "gym:CartPole-v1": ((400, 600, 3), 50),
    "gym:FrozenLake-v1": ((256, 256, 3), 4),
}


def _picture(env: VectorEnv) -> np.ndarray:
    """A copy of the picture that people see now."""
    rendered = env.render()
    assert rendered is not None
    return np.array(rendered[0])


@pytest.mark.parametrize("name", PICTURES)
def test_a_screen_plays_as_its_environment_does(name: str) -> None:
    screen, plain = screens.make(name, seed=SEED), suites.make(name, 1, seed=SEED)
    count = plain.single_action_space.n  # type: ignore[attr-defined]
    actions = np.random.default_rng(0).integers(count, size=(40, 1))
    np.testing.assert_array_equal(screen.env.reset()[0], plain.reset()[0])
    pictures = []
    for action in actions:
        for ours, theirs in zip(screen.env.step(action)[:4], plain.step(action)[:4], strict=True):
            np.testing.assert_array_equal(ours, theirs)
        pictures.append(_picture(screen.env))
    shape, speed = PICTURES[name]
    assert {(picture.shape, picture.dtype) for picture in pictures} == {(shape, np.dtype(np.uint8))}
    assert screen.frames_per_second == speed
    assert any((picture != pictures[0]).any() for picture in pictures)
    assert len(screen.action_names) == count
    screen.env.close()


def test_the_coloured_screen_is_of_the_frame_that_the_agent_sees() -> None:
    """Through a reset too: the two copies draw the same no-ops."""
    env = screens.make("atari:breakout", seed=SEED).env
    observation, _ = env.reset()
    rng, ended, differences = np.random.default_rng(0), 0, []
    for _ in range(400):
        grey = Image.fromarray(_picture(env)).convert("L").resize((84, 84), Image.Resampling.BOX)
        differences.append(np.abs(np.asarray(grey, float) - observation[0]).mean())
        observation, _, terminated, _, _ = env.step(rng.integers(18, size=1))
        ended += int(terminated[0])
    assert ended > 0
    assert max(differences) < 3  # of 255: scaled in another way, but the same frame


@pytest.mark.parametrize(
    ("name", "full", "names"),
    [
        ("catch", True, ("left", "stay", "right")),
        ("catch:large_rewards", True, ("left", "stay", "right")),
        ("memory:recall", True, ("cue 0", "cue 1", "cue 2", "cue 3")),
        ("memory:cartpole", True, ("left", "right")),
        ("atari:breakout", False, ("noop", "fire", "right", "left")),
        ("gym:FrozenLake-v1", True, ("0", "1", "2", "3")),
    ],
)
def test_actions_have_names(name: str, full: bool, names: tuple[str, ...]) -> None:
    screen = screens.make(name, seed=0, full_action_space=full)
    assert screen.action_names == names


def test_all_18_actions_of_atari_have_names() -> None:
    names = screens.make("atari:pong", seed=0).action_names
    assert len(set(names)) == 18
    assert names[:6] == ("noop", "fire", "up", "right", "left", "down")
    assert names[14] == "up right fire"
    assert screens.make("atari:skiing", seed=0).action_names[14] == "up right"  # no fire there


def test_a_level_shows_what_the_agent_sees(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.syspath_prepend(Path(deepmind_lab.__file__).parent)
    for variable in ("TMPDIR", "XDG_CACHE_HOME"):
        monkeypatch.setenv(variable, str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    screen = screens.make(f"dmlab:{FIXED}", seed=0)
    with contextlib.closing(screen.env) as env:
        observation, _ = env.reset()
        np.testing.assert_array_equal(_picture(env), observation["image"][0])
        observation, *_ = env.step(np.zeros(1, np.int64))
        np.testing.assert_array_equal(_picture(env), observation["image"][0])
    assert (screen.frames_per_second, screen.action_names[0]) == (15, "forward")


@pytest.mark.parametrize(
    ("observation", "picture"),
    [
        (np.full((2, 3), 7, np.uint8), np.full((2, 3, 3), 7)),
        (np.arange(12, dtype=np.uint8).reshape(2, 2, 3), np.arange(12).reshape(2, 2, 3)),
        (np.array([0, 1, -50], np.float32), [[[0, 0, 0], [0, 194, 0], [255, 0, 0]]]),
        (np.full((2, 3), 0.2, np.float32), np.full((2, 3, 3), 51)),
        (np.arange(30, dtype=np.uint8).reshape(2, 3, 5), np.arange(30).reshape(2, 3, 5)[..., 2:]),
        (np.array([[[1, 9]]], np.uint8), [[[1, 1, 1]]]),
        (np.array([0, 255], np.uint8), [[[0, 0, 0], [0, 194, 0]]]),
    ],
)
def test_observations_are_drawn(observation: np.ndarray, picture: Any) -> None:
    np.testing.assert_array_equal(screens.drawn(observation), picture)
    assert screens.drawn(observation).dtype == np.uint8


class _Grey(gymnasium.Env):
    """Whose picture has one channel, and whose metadata say nothing."""

    metadata = {"render_modes": None, "render_fps": None}  # noqa: RUF012
    observation_space = gymnasium.spaces.Box(0, 1, (2,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)
    render_mode = "rgb_array"

    def reset(self, **_: Any) -> tuple[np.ndarray, dict[str, Any]]:
        return np.zeros(2, np.float32), {}

    def step(self, _: Any) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        return np.zeros(2, np.float32), 0.0, False, False, {}

    def render(self) -> np.ndarray:
        return np.full((4, 6, 1), 7, np.uint8)


def test_a_grey_picture_is_shown() -> None:
    screen = screens.make(f"{__name__}:_Grey", seed=0)
    with contextlib.closing(screen.env) as env:
        env.reset()
        np.testing.assert_array_equal(_picture(env), np.full((4, 6, 3), 7))
    assert screen.frames_per_second == 30


def test_an_action_of_several_numbers_is_called_by_them() -> None:
    screen = screens.Screen(suites.make("catch", 1, seed=0), (), 4)
    assert screen.action_name(np.array([1, 2], np.int32)) == "1 2"
