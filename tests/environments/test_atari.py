"""Atari: the paper's settings, one by one, against the emulator's own vector environment."""

import subprocess
import sys
from typing import Any, NamedTuple

import numpy as np
import pytest
from ale_py.vector_env import AtariVectorEnv
from gymnasium import spaces
from gymnasium.vector import VectorEnv

from environments import atari
from environments.copies import vector

PAPER: dict[str, Any] = {
    "full_action_space": True,
    "frameskip": 4,
    "maxpool": True,
    "noop_max": 30,
    "max_num_frames_per_episode": 108_000,
    "repeat_action_probability": 0.0,
    "reward_clipping": False,
    "episodic_life": False,
    "life_loss_info": False,
    "use_fire_reset": False,
}


class Play(NamedTuple):
    """Random play; `frames` [T + 1, N, 84, 84] begins with the reset's."""

    frames: np.ndarray
    rewards: np.ndarray
    terminated: np.ndarray

    def equals(self, other: "Play") -> bool:
        return all(np.array_equal(ours, theirs) for ours, theirs in zip(self, other, strict=True))


def _play(env: VectorEnv, seeds: Any, steps: int = 300) -> Play:
    rng = np.random.default_rng(0)
    frames, _ = env.reset(seed=seeds)
    rows = [env.step(rng.integers(18, size=env.num_envs)) for _ in range(steps)]
    env.close()
    observations = np.stack([frames, *(row[0] for row in rows)])
    if observations.ndim == 5:
        observations = observations[:, :, -1]  # the newest of a stack
    return Play(observations, np.stack([r[1] for r in rows]), np.stack([r[2] for r in rows]))


def _reference(game: str, **settings: Any) -> Play:
    env = AtariVectorEnv(game, 2, stack_num=4, **{**PAPER, **settings})
    return _play(env, vector.spread(3, 2))


@pytest.mark.parametrize("game", ["breakout", "ms_pacman"])
def test_equals_the_newest_frame_of_a_stack_under_the_papers_settings(game: str) -> None:
    play = _play(atari.Atari(game, 2), 3)
    assert play.frames.shape == (301, 2, 84, 84)
    assert play.terminated.any() == (game == "breakout")  # a reset lies inside
    assert play.equals(_reference(game))


@pytest.mark.parametrize(
    ("game", "setting", "value"),
    [
        ("breakout", "frameskip", 3),
        ("breakout", "maxpool", False),
        ("breakout", "noop_max", 10),
        ("breakout", "repeat_action_probability", 0.25),
        ("breakout", "episodic_life", True),
        ("breakout", "life_loss_info", True),
        ("breakout", "use_fire_reset", True),
        ("ms_pacman", "reward_clipping", True),
    ],
)
def test_any_other_setting_would_be_noticed(game: str, setting: str, value: object) -> None:
    assert not _play(atari.Atari(game, 2), 3).equals(_reference(game, **{setting: value}))


def test_episodes_begin_with_0_to_30_noops() -> None:
    env = atari.Atari("pong", 16)
    counts = [env.reset(seed=0)[1]["episode_frame_number"], env.reset()[1]["episode_frame_number"]]
    for noops in counts:
        assert noops.min() >= 0
        assert 20 < noops.max() <= 30
        assert len(set(noops)) > 7
    assert (counts[0] != counts[1]).any()


def test_nothing_but_the_noops_is_random() -> None:
    env = atari.Atari("breakout", 32)
    frames, infos = env.reset(seed=0)
    noops = infos["episode_frame_number"]
    _, groups = np.unique(noops, return_inverse=True)
    first = np.array([np.argmax(groups == group) for group in groups])
    assert (first != np.arange(32)).sum() > 8
    rng = np.random.default_rng(0)
    for action in rng.integers(18, size=60):
        np.testing.assert_array_equal(frames, frames[first])
        frames, *_ = env.step(np.full(32, action))


def test_minimal_actions_are_those_of_the_game() -> None:
    """Breakout's four are no-op, fire, right, left; in the full set they are 0, 1, 3, 4."""
    few, all_ = atari.Atari("breakout", 2, full_action_space=False), atari.Atari("breakout", 2)
    assert few.single_action_space == spaces.Discrete(4)
    assert all_.single_action_space == spaces.Discrete(18)
    few.reset(seed=0)
    all_.reset(seed=0)
    rng = np.random.default_rng(0)
    for actions in rng.integers(4, size=(60, 2)):
        frames, *_ = few.step(actions)
        expected, *_ = all_.step(np.array([0, 1, 3, 4])[actions])
        np.testing.assert_array_equal(frames, expected)


def test_forbidden_fire_is_the_same_action_without_it() -> None:
    """ALE's order: no-op, fire, up, right, left, down, 4 diagonals, the 8 directions with fire."""
    with_fire, without = atari.Atari("skiing", 1), atari.Atari("skiing", 1)
    with_fire.reset(seed=0)
    without.reset(seed=0)
    rng = np.random.default_rng(0)
    for _ in range(60):
        action = rng.choice([1, *range(10, 18)])
        expected, *_ = without.step(np.array([0 if action == 1 else action - 8]))
        frames, *_ = with_fire.step(np.array([action]))
        np.testing.assert_array_equal(frames, expected)


def test_lives_fall_without_an_end_and_game_over_terminates() -> None:
    env = atari.Atari("breakout", 3)
    _, infos = env.reset(seed=0)
    with pytest.raises(IndexError, match="18 is out of bounds"):
        env.step(np.array([0, 18, 0]))
    lives = infos["lives"]
    np.testing.assert_array_equal(lives, 5)
    ended = np.zeros(3, bool)
    losses = game_overs = 0
    rng = np.random.default_rng(0)
    for _ in range(500):
        _, _, terminated, truncated, infos = env.step(rng.integers(18, size=3))
        np.testing.assert_array_equal(infos["lives"][ended], 5)
        np.testing.assert_array_equal(terminated, (infos["lives"] == 0))
        assert not truncated.any()
        losses += ((infos["lives"] < lives) & ~terminated).sum()
        game_overs += terminated.sum()
        lives, ended = infos["lives"], terminated
    assert game_overs > 0
    assert losses >= 4 * game_overs


@pytest.mark.parametrize(("max_frames", "steps"), [(100, 25), (101, 26), (104, 26)])
def test_the_limit_counts_played_frames_and_truncates(max_frames: int, steps: int) -> None:
    env = atari.Atari("pong", 4, max_frames=max_frames)
    _, infos = env.reset(seed=0)
    assert len(set(infos["episode_frame_number"])) > 1  # the no-ops differ, the limit does not
    for _ in range(2):
        for step in range(1, steps + 1):
            _, _, terminated, truncated, _ = env.step(np.zeros(4, np.int64))
            np.testing.assert_array_equal(truncated, step == steps)
            assert not terminated.any()
        _, rewards, _, truncated, _ = env.step(np.zeros(4, np.int64))
        assert not rewards.any()
        assert not truncated.any()


def test_every_listed_game_can_be_loaded() -> None:
    """In a process of its own, since a cartridge that fails to load ends the process."""
    program = (
        "from environments import atari\n"
        "for game in atari.games():\n"
        "    assert atari.Atari(game, 1).single_action_space.n == 18, game\n"
        "print(len(atari.games()))\n"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert int(run.stdout) > 57
