"""Registered ids: what they show and take, what is said of those that cannot be used."""

from collections.abc import Iterator
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from environments import gym, suites
from environments.dm import make_environment_spec


class Probe(gymnasium.Env):
    """Shows a sample of its observation space and pays the action it was given."""

    def __init__(self, observation_space: spaces.Space, action_space: spaces.Space):
        self.observation_space = observation_space
        self.action_space = action_space

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        if seed is not None:
            self.observation_space.seed(seed)
        return self.observation_space.sample(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        assert self.action_space.contains(action)
        return self.observation_space.sample(), float(np.sum(action)), False, False, {}


def _make_probe(**spaces_of_it: Any) -> gymnasium.Env:
    return Probe(**spaces_of_it)


class Sentence(spaces.Space):
    """Does not say whether it forms an array: gymnasium's own answer to that is to raise."""


class Blind(Probe):
    """Knows what it shows no sooner than it has a screen."""

    def __init__(self, **_: Any) -> None:
        self.action_space = FIVE

    @property
    def observation_space(self) -> spaces.Space:  # type: ignore[override]
        raise OSError("no screen")


def _raise(**error: Exception) -> gymnasium.Env:
    raise error["error"]


ERRORS: dict[str, tuple[Exception, str]] = {
    "silent": (NotImplementedError(), "NotImplementedError."),
    "long": (RuntimeError("no display\nhere is how to buy one"), "RuntimeError: no display"),
    "wrong_type": (TypeError("size must be int"), "TypeError: size must be int"),
    "key": (KeyError("mission"), "KeyError: "),
}


FIVE = spaces.Discrete(5)
OBSERVATIONS: dict[str, tuple[spaces.Space, tuple[int, ...], Any]] = {
    "float64": (spaces.Box(-1, 1, (3,), np.float64), (3,), np.float32),
    "grey": (spaces.Box(0, 255, (8, 6), np.uint8), (8, 6), np.uint8),
    "tuple": (spaces.Tuple([spaces.Discrete(3), spaces.Box(0, 1, (2,))]), (5,), np.float32),
}
ACTIONS = {
    "shifted": spaces.Discrete(3, start=-1),
    "several": spaces.MultiDiscrete([2, 3], start=[5, -1]),
    "unbounded": spaces.Box(np.array([-1, -1], np.float32), np.array([1, np.inf], np.float32)),
}


@pytest.fixture(autouse=True)
def _registered() -> Iterator[None]:
    probes: dict[str, tuple[spaces.Space, spaces.Space]] = {
        name: (space, FIVE) for name, (space, _, _) in OBSERVATIONS.items()
    }
    probes |= {name: (spaces.Box(0, 1, (2,)), space) for name, space in ACTIONS.items()}
    probes["once"] = (spaces.Box(0, 1, (2,)), FIVE)
    probes["sequence"] = (spaces.Sequence(spaces.Discrete(2)), FIVE)
    probes["sentence"] = (spaces.Dict(said=Sentence()), FIVE)
    for name, (observations, actions) in probes.items():
        gymnasium.register(
            f"probe/{name}-v0",
            entry_point=_make_probe,
            max_episode_steps=4,
            kwargs={"observation_space": observations, "action_space": actions},
        )
    gymnasium.register("probe/blind-v0", entry_point=Blind)
    for name, (error, _) in ERRORS.items():
        gymnasium.register(f"probe/{name}-v0", entry_point=_raise, kwargs={"error": error})
    yield
    for name in (*probes, *ERRORS, "blind"):
        del gymnasium.registry[f"probe/{name}-v0"]


@pytest.mark.parametrize("name", OBSERVATIONS)
def test_observations(name: str) -> None:
    _, shape, dtype = OBSERVATIONS[name]
    env = suites.make(f"gym:probe/{name}-v0", 2, seed=0)
    box = env.single_observation_space
    assert isinstance(box, spaces.Box)
    assert (box.shape, box.dtype) == (shape, dtype)
    observations, _ = env.reset()
    assert (observations.shape, observations.dtype) == ((2, *shape), dtype)
    assert env.observation_space.contains(observations)
    spec = make_environment_spec(f"gym:probe/{name}-v0").observations
    spec.validate(observations[0])


def test_discrete_observations_are_one_hot() -> None:
    observations, _ = suites.make("gym:FrozenLake-v1", 2, seed=0).reset()
    np.testing.assert_array_equal(observations, np.eye(16)[[0, 0]])


def test_actions_begin_at_zero() -> None:
    env = suites.make("gym:probe/shifted-v0", 3, seed=0)
    env.reset()
    assert env.single_action_space == spaces.Discrete(3)
    _, rewards, *_ = env.step(np.array([0, 1, 2]))
    np.testing.assert_array_equal(rewards, [-1, 0, 1])


def test_several_numbers_are_an_action() -> None:
    env = suites.make("gym:probe/several-v0", 2, seed=0)
    env.reset()
    assert env.single_action_space == spaces.MultiDiscrete([2, 3])
    assert env.action_space.contains(np.array([[0, 2], [1, 1]], np.int32))
    _, rewards, *_ = env.step(np.array([[0, 2], [1, 1]], np.int32))
    np.testing.assert_array_equal(rewards, [5 + 1, 6 + 0])
    spec = make_environment_spec("gym:probe/several-v0").actions
    assert (spec.shape, spec.dtype) == ((2,), np.int32)
    np.testing.assert_array_equal([spec.minimum, spec.maximum], [[0, 0], [1, 2]])


def test_a_time_limit_truncates() -> None:
    env = suites.make("gym:probe/grey-v0", 2, seed=0)
    env.reset()
    for step in range(1, 11):
        _, rewards, terminated, truncated, _ = env.step(np.array([1, 2]))
        np.testing.assert_array_equal(truncated, step % 5 == 4)
        np.testing.assert_array_equal(rewards, [0, 0] if step % 5 == 0 else [1, 2])
        assert not terminated.any()


@pytest.mark.parametrize(
    ("env_id", "message"),
    [
        ("probe/unbounded-v0", r"must have .* within finite bounds, got Box\(-1.0, \[ 1. inf\]"),
        ("probe/sequence-v0", r"must have observations made of arrays, .* got Sequence"),
        ("GymV21Environment-v0", "gymnasium cannot make"),
        ("probe/sentence-v0", r"must have observations .* got .*Sentence object at .* as 'said'."),
        ("probe/blind-v0", "cannot make 'gym:probe/blind-v0': OSError: no screen"),
    ],
)
def test_unusable_ids_are_refused(env_id: str, message: str) -> None:
    with pytest.raises(ValueError, match=message) as refusal:
        suites.check(f"gym:{env_id}")
    assert f"'gym:{env_id}'" in str(refusal.value)


@pytest.mark.parametrize("name", ERRORS)
def test_whatever_a_constructor_raises_is_told_in_a_sentence(name: str) -> None:
    _, told = ERRORS[name]
    with pytest.raises(ValueError, match="cannot make") as refusal:
        suites.check(f"gym:probe/{name}-v0")
    said = str(refusal.value)
    assert said.startswith(f"gymnasium cannot make 'gym:probe/{name}-v0': {told}")
    assert "\n" not in said


def test_an_environment_is_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    make = gymnasium.make

    def noted(env_id: str) -> gymnasium.Env:
        made.append(env_id)
        return make(env_id)

    monkeypatch.setattr(gymnasium, "make", noted)
    for _ in range(2):
        suites.check("gym:probe/once-v0")
        assert suites.observation_space("gym:probe/once-v0").shape == (2,)
        assert not gym.describe("gym:probe/once-v0").draws
        assert gym.describe("gym:probe/once-v0").frames_per_second == 30
    assert made == ["probe/once-v0"] * 2  # a second, whose spaces might be others
