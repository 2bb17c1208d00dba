"""A policy that is stepped by hand plays as the run's evaluation does."""

import pathlib
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
import pytest
import tree

from analysis.playing import evaluation
from analysis.playing import policy as policy_module
from analysis.playing.evaluation import Player
from analysis.playing.policy import Policy
from environments import import_path, suites
from tests.run_folder import saved_runs

# Pays for a button that depends on what is seen; nothing is drawn by chance.
OWN = """
import gymnasium
import numpy as np

class Task(gymnasium.Env):
    observation_space = gymnasium.spaces.Dict(
        clock=gymnasium.spaces.Discrete(8, start=3), dial=gymnasium.spaces.Box(-9, 9, (2,))
    )
    action_space = gymnasium.spaces.Discrete(3, start=5)

    def reset(self, *, seed=None, options=None):
        self.t = 0
        return self.see(), {}

    def step(self, action):
        assert action in self.action_space, action
        self.t += 1
        return self.see(), float((action - 5) * self.t), self.t == 7, False, {}

    def see(self):
        return dict(clock=np.int64(3 + self.t), dial=np.array([self.t, -self.t], np.float32))
"""


@pytest.fixture(scope="module")
def catch(tmp_path_factory: pytest.TempPathFactory) -> Player:
    """R2D2 on catch, with parameters drawn by chance."""
    return evaluation.load(saved_runs.save(tmp_path_factory.mktemp("runs") / "catch"))


def _own(folder: pathlib.Path, write_module: Callable[[str], str]) -> tuple[Player, str]:
    task = f"{write_module(OWN)}:Task"
    return evaluation.load(saved_runs.save(folder / "run", "impala", task)), task


def test_episodes_by_hand_have_the_returns_of_an_evaluation(catch: Player) -> None:
    evaluated = evaluation.play(catch, "catch", 8)
    policy, environment = Policy(catch), suites.make("catch", 8, seed=0)
    environment.reset()  # as an evaluation's loop does once before it plays
    state, (observation, _) = policy.initial_state(batch_size=8), environment.reset()
    total, reward, ended = np.zeros(8), np.zeros(8), np.zeros(8, bool)
    while not ended.all():  # at the same step, in catch
        action, state = policy.step(observation, state, reward)
        observation, reward, ended, _, _ = environment.step(action)
        total += reward
    assert total.tolist() == [episode.episode_return for episode in evaluated]
    assert set(total) == {-1.0, 1.0}


def test_what_an_own_environment_shows_and_takes_is_converted(
    tmp_path: pathlib.Path, write_module: Callable[[str], str]
) -> None:
    player, task = _own(tmp_path, write_module)
    (evaluated,) = evaluation.play(player, task, 1)
    environment: gymnasium.Env = import_path.load(task, what="", example="")()
    policy = Policy(player)
    state, (observation, _) = policy.initial_state(), environment.reset()
    total, reward, ended = 0.0, 0.0, False
    while not ended:
        action, state = policy.step(observation, state, reward)
        observation, reward, ended, _, _ = environment.step(action)  # type: ignore[assignment]
        total += reward
    assert total == evaluated.episode_return


def _stream(count: int) -> np.ndarray:
    return np.random.default_rng(3).integers(0, 256, (6, count, 10, 5)).astype(np.uint8)


def test_a_batch_is_played_as_its_parts_are(catch: Player) -> None:
    policy, stream = Policy(catch), _stream(3)
    batch, alone = policy.initial_state(batch_size=3), [policy.initial_state() for _ in range(3)]
    for seen in stream:
        rewards = seen[:, 0, 0].astype(float)
        actions, batch = policy.step(seen, batch, rewards)
        for i in range(3):
            action, alone[i] = policy.step(seen[i], alone[i], rewards[i])
            assert action == actions[i]
    for i in range(3):
        part = tree.map_structure(lambda x, i=i: x[i], batch)
        tree.map_structure(lambda x, y: np.testing.assert_allclose(x, y, atol=1e-5), part, alone[i])


def test_a_batch_has_its_texts_as_gymnasium_gives_them() -> None:
    parts = {"mission": ("go", "stay"), "place": (np.arange(2), np.arange(4).reshape(2, 2))}
    one, another = policy_module._split(parts, 2)
    assert (one["mission"], another["mission"]) == ("go", "stay")
    assert (one["place"][0], another["place"][0]) == (0, 1)
    assert (one["place"][1].tolist(), another["place"][1].tolist()) == ([0, 1], [2, 3])


def test_an_episode_that_begins_forgets(catch: Player) -> None:
    policy, (one, two, *_) = Policy(catch), _stream(1)[:, 0]
    _, new = policy.step(two, policy.initial_state())
    _, state = policy.step(one, policy.initial_state(), 5.0)
    for first, same in ((True, True), (False, False)):
        _, after = policy.step(two, state, 5.0, first=first)
        close = [np.allclose(x, y) for x, y in zip(after["core"], new["core"], strict=True)]
        assert all(close) == same


@pytest.mark.parametrize(
    ("observation", "batch", "said"),
    [
        (np.zeros((5, 10), np.uint8), None, r"must be uint8 \[10, 5\], got uint8 \[5, 10\]\."),
        (np.full((10, 5), 0.5), None, r"must be uint8 \[10, 5\], got array"),
        (np.full((10, 5), -1), None, r"must be uint8 \[10, 5\], got array"),
        ({"left": 1}, None, r"must be uint8 \[10, 5\], got \{'left': 1\}\."),
        (np.zeros((10, 5)), 0, "batch_size must be at least 1, or None for one .*, got 0"),
        (np.zeros((3, 10, 5)), 2, r"must have a first axis of 2, got float64 \[3, 10, 5\]\."),
    ],
)
def test_what_is_no_observation_of_the_environment_is_told(
    catch: Player, observation: Any, batch: int | None, said: str
) -> None:
    policy = Policy(catch)
    with pytest.raises(ValueError, match=said):
        policy.step(observation, policy.initial_state(batch))
