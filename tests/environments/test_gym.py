"""Environments made one at a time, a user's own or registered: they play, or are refused."""

import contextlib
import itertools
import re
from collections.abc import Callable, Iterator
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from environments import gym, screens, suites
from environments.copies import made_singly
from environments.dm import make_environment_spec

Write = Callable[[str], str]

TASKS = """
import dm_env, gymnasium, numpy as np
from dm_env import specs
from gymnasium import spaces

class Walk(gymnasium.Env):
    observation_space = spaces.Box(-1, 1, (2,), np.float64)
    action_space = spaces.Box(-2, 2, (3,), np.float32)
    metadata = {"render_modes": ["rgb_array"], "render_fps": 7}

    def __init__(self, render_mode=None):
        self.render_mode = render_mode

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.steps = 0
        return self.np_random.uniform(-1, 1, 2), {}

    def step(self, action):
        self.steps += 1
        observation = self.np_random.uniform(-1, 1, 2)
        return observation, float(action.sum()), self.steps == 3, False, {}

    def render(self):
        return np.full((4, 6, 3), self.steps, np.uint8)

class Room(dm_env.Environment):
    def reset(self):
        self.steps = 0
        return dm_env.restart(self.seen())

    def step(self, action):
        self.steps += 1
        return (dm_env.truncation if self.steps == 4 else dm_env.transition)(action, self.seen())

    def seen(self):
        return {"image": np.full((2, 2), self.steps, np.uint8), "where": np.int32(self.steps)}

    def observation_spec(self):
        return {"image": specs.BoundedArray((2, 2), np.uint8, 0, 9),
                "where": specs.DiscreteArray(5)}

    def action_spec(self):
        return specs.DiscreteArray(3)

def drawing(): return Walk("rgb_array")
def text(): return "an environment"
def division(): return 1 / 0
def needs(size): return Walk()

class Unbounded(Walk):
    action_space = spaces.Box(-np.inf, np.inf, (3,))

class Blind(gymnasium.Env):
    action_space = spaces.Discrete(2)

class Dark(Walk):
    def reset(self, *, seed=None, options=None):
        raise RuntimeError("no display")

class OldReset(Walk):
    def reset(self, *, seed=None, options=None):
        return super().reset(seed=seed)[0]

class OldStep(Walk):
    def step(self, action):
        return super().step(action)[:4]

class NotANumber(Walk):
    def step(self, action):
        return (*super().step(action)[:1], float("nan"), *super().step(action)[2:])

class Maybe(Walk):
    def step(self, action):
        return (*super().step(action)[:2], None, *super().step(action)[3:])

class Blank(Walk):
    def render(self):
        return None

class Unlit(Walk):
    def render(self):
        raise OSError("no lamp")

class Set(Walk):  # whose constructor takes no mode
    def __init__(self):
        super().__init__()

    def render(self):
        assert self.render_mode == "rgb_array"
        return super().render()

class Growing(Walk):
    made = 0

    def __init__(self):
        Growing.made += 1
        self.observation_space = spaces.Box(-1, 1, (1 + Growing.made,), np.float64)

class Drawing(Walk):  # its bounds by chance
    made = 0

    def __init__(self):
        Drawing.made += 1
        self.action_space = spaces.Box(-1, Drawing.made, (3,), np.float32)

class More(Walk):
    made = 0

    def __init__(self):
        More.made += 1
        self.action_space = spaces.Discrete(1 + More.made)

    def step(self, action):
        return super().step(np.zeros(1))

class Beyond(Walk):
    observation_space = spaces.Box(2, 3, (2,), np.float64)

    def reset(self, *, seed=None, options=None):
        return np.full(2, 0.27), super().reset(seed=seed)[1]

class Unchecked(Beyond):
    metadata = {"unchecked_observations": True}

class Plain(Walk):
    def reset(self, seed=None):
        return super().reset(seed=seed)

    def close(self):
        raise OSError("there is nothing to close")

number = 3
"""

REFUSED = {
    "number": "must be a function without arguments that makes an environment, got 3.",
    "text": "must return a gymnasium.Env or a dm_env.Environment, got a builtins.str.",
    "division": "called without arguments, makes no environment: ZeroDivisionError: division",
    "needs": "makes no environment: TypeError: needs() missing 1 required positional argument",
    "Unbounded": "must have discrete actions, or one vector of floats within finite bounds, got B",
    "Blind": "makes an environment that cannot be used: AttributeError: 'Blind' object has no",
    "Dark": "makes an environment that cannot be used: RuntimeError: no display",
    "OldReset": "cannot be used: ValueError: reset() must give (observation, info), got array(",
    "OldStep": "step() must give (observation, reward, terminated, truncated, info), got (array",
    "Beyond": "(2,), float64), got 0.27 at [0]; metadata['unchecked_observations'] = True lets",
    "Growing": "must have the same spaces in every copy, but for bounds, got Box(-1.0, 1.0, (2,),",
    "More": "must have the same spaces in every copy, but for bounds, got Discrete(2) and",
    "NotANumber": "cannot be used: ValueError: a reward must be a finite number, got nan",
    "Maybe": "terminated must be true or false, got None",
}


@pytest.fixture
def module(write_module: Write) -> str:
    """A module with tasks of every kind."""
    return write_module(TASKS)


@pytest.mark.parametrize("function", REFUSED)
def test_what_is_no_task_is_refused_in_a_sentence(function: str, module: str) -> None:
    name = f"{module}:{function}"
    with pytest.raises(ValueError, match=re.escape(REFUSED[function])) as told:
        suites.check(name)
    assert repr(name) in str(told.value)
    assert "\n" not in str(told.value)
    assert (function == "division") == isinstance(told.value.__cause__, ZeroDivisionError)
    suites.check_names(name)  # which imports nothing


def test_a_gymnasium_environment_with_bounded_actions(module: str) -> None:
    name = f"{module}:Walk"  # a class is a function without arguments too
    env = suites.make(name, 2, seed=0)
    assert isinstance(env.env, made_singly.Copies)  # type: ignore[attr-defined]
    assert env.single_action_space == spaces.Box(-2, 2, (3,), np.float32)
    observations = [env.reset()[0]]
    for step in range(1, 9):
        observation, rewards, terminated, truncated, _ = env.step(
            np.array([[1, 1, 0], [0, 0, 0]], np.float32)
        )
        np.testing.assert_array_equal(rewards, [0, 0] if step % 4 == 0 else [2, 0])
        np.testing.assert_array_equal(terminated, step % 4 == 3)
        assert not truncated.any()
        observations.append(observation)
    assert observations[0].dtype == np.float32
    again = suites.make(name, 2, seed=0)
    np.testing.assert_array_equal(again.reset()[0], observations[0])
    assert (observations[0][0] != observations[0][1]).all()
    spec = make_environment_spec(name)
    assert spec.actions.shape == (3,)
    assert gym.describe(name).observations.shape == spec.observations.shape == (2,)


def test_a_dm_env_environment(module: str) -> None:
    env = suites.make(f"{module}:Room", 3, seed=0)
    assert env.single_action_space == spaces.Discrete(3)
    begun = env.reset()[0]
    np.testing.assert_array_equal(begun["image"], np.zeros((3, 2, 2)))
    np.testing.assert_array_equal(begun["where"], [[1, 0, 0, 0, 0]] * 3)
    for step in range(1, 5):
        observations, rewards, terminated, truncated, _ = env.step(np.array([0, 1, 2]))
        np.testing.assert_array_equal(observations["image"], np.full((3, 2, 2), step))
        np.testing.assert_array_equal(observations["where"], [np.eye(5)[step]] * 3)
        np.testing.assert_array_equal(rewards, [0, 1, 2])
        np.testing.assert_array_equal(truncated, step == 4)
        assert not terminated.any()
    observations, rewards, *_ = env.step(np.array([0, 1, 2]))
    np.testing.assert_array_equal(observations["image"], 0)
    np.testing.assert_array_equal(rewards, 0)


def test_tasks_of_ones_own_in_a_suite(module: str) -> None:
    name = f"{module}:Walk,{module}:drawing"
    env = suites.make_each(suites.tasks(name), seed=0)
    env.reset()
    assert env.step(np.zeros((2, 3), np.float32))[0].shape == (2, 2)
    with pytest.raises(ValueError, match="Actions must lie in Box"):
        env.step(np.full((2, 3), 3, np.float32))
    with pytest.raises(ValueError, match=r"must have the same observations and actions, but '\w+:"):
        make_environment_spec(f"{module}:Room,{name}")


@pytest.mark.parametrize("function", ["drawing", "Walk", "Set"])
def test_a_task_that_offers_to_draw_itself_does(function: str, module: str) -> None:
    screen = screens.make(f"{module}:{function}", seed=0)
    with contextlib.closing(screen.env) as env:
        env.reset()
        env.step(np.zeros((1, 3), np.float32))
        (picture,) = env.render() or ()
    np.testing.assert_array_equal(picture, np.ones((4, 6, 3)))
    assert screen.frames_per_second == 7
    assert screen.action_name(np.array([1, -0.256, 0], np.float32)) == "+1.00 -0.26 +0.00"


@pytest.mark.parametrize(("function", "fps"), [("Blank", 7), ("Room", 30)])
def test_any_other_is_drawn_from_its_observation(function: str, fps: int, module: str) -> None:
    screen = screens.make(f"{module}:{function}", seed=0)
    with contextlib.closing(screen.env) as env:
        observation, _ = env.reset()
        (picture,) = env.render() or ()
    shown = observation["image"] if function == "Room" else observation
    np.testing.assert_array_equal(picture, screens.drawn(shown[0]))
    assert screen.frames_per_second == fps


def test_one_that_cannot_draw_itself_here_is_refused_before_it_is_played(module: str) -> None:
    name = f"{module}:Unlit"
    with pytest.raises(ValueError, match=f"^{name!r} cannot draw itself here: OSError: no lamp$"):
        screens.check(name)
    suites.check(name)  # it can be played
    for function in ("Walk", "Blank", "Room"):  # the observations of the last two are drawn
        screens.check(f"{module}:{function}")


@pytest.mark.parametrize("function", ["Unchecked", "Plain", "Drawing"])
def test_what_is_odd_and_does_no_harm_is_played(function: str, module: str) -> None:
    env = suites.make(f"{module}:{function}", 2, seed=0)
    env.reset()
    for _ in range(4):
        *_, infos = env.step(np.ones((2, 3), np.float32))
        assert not np.any(infos.get("lost", 0))
    env.close()


def test_a_module_may_register_ids(write_module: Write) -> None:
    walk = write_module(TASKS)
    module = write_module(
        f"import gymnasium\ngymnasium.register('{walk}/Walk-v0', '{walk}:Walk', "
        "max_episode_steps=2)"
    )
    name = f"gym:{module}:{walk}/Walk-v0"
    env = suites.make(name, 2, seed=0)
    env.reset()
    env.step(np.zeros((2, 3), np.float32))
    assert env.step(np.zeros((2, 3), np.float32))[3].all()  # truncated
    assert screens.make(name, seed=0).frames_per_second == 7
    with pytest.raises(
        ValueError, match="'gym:no_such_module:Walk-v0': importing 'no_such_module' raises Mod"
    ):
        suites.check("gym:no_such_module:Walk-v0")
    with pytest.raises(
        ValueError, match=rf"'{module}' registers no '{walk}/Wlak-v0', did .* {walk}/Walk-v0"
    ):
        suites.check(f"gym:{module}:{walk}/Wlak-v0")
    near = f"{module}x"
    with pytest.raises(ValueError, match=rf"importing '{near}' raises .*; did you mean users_own_"):
        suites.check(f"gym:{near}:{walk}/Walk-v0")


class Probe(gymnasium.Env):
    """Shows a sample of its observation space and pays the action it was given."""

    def __init__(
        self,
        action_space: spaces.Space | None = None,
        observation_space: spaces.Space | None = None,
        error: Exception | None = None,
    ) -> None:
        if error is not None:
            raise error
        self.observation_space = observation_space or spaces.Box(0, 1, (2,))
        self.action_space = action_space or spaces.Discrete(5)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        self.observation_space.seed(seed)
        return self.observation_space.sample(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        assert self.action_space.contains(action)
        return self.observation_space.sample(), float(np.sum(action)), False, False, {}


_numbers = itertools.count()


@pytest.fixture
def register() -> Iterator[Callable[..., str]]:
    """Registers `Probe` with arguments, for as long as a test lasts, and gives its name."""
    ids = []

    def do(**arguments: Any) -> str:
        ids.append(f"probe/{next(_numbers)}-v0")
        gymnasium.register(
            ids[-1], lambda **how: Probe(**how), max_episode_steps=4, kwargs=arguments
        )
        return f"gym:{ids[-1]}"

    yield do
    for env_id in ids:
        del gymnasium.registry[env_id]


def test_several_numbers_are_an_action(register: Callable[..., str]) -> None:
    name = register(action_space=spaces.MultiDiscrete([2, 3], start=[5, -1]))
    env = suites.make(name, 2, seed=0)
    env.reset()
    assert env.single_action_space == spaces.MultiDiscrete([2, 3])
    assert env.action_space.contains(np.array([[0, 2], [1, 1]], np.int32))
    _, rewards, *_ = env.step(np.array([[0, 2], [1, 1]], np.int32))
    np.testing.assert_array_equal(rewards, [5 + 1, 6 + 0])
    spec = make_environment_spec(name).actions
    assert (spec.shape, spec.dtype) == ((2,), np.int32)
    np.testing.assert_array_equal([spec.minimum, spec.maximum], [[0, 0], [1, 2]])


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (dict(error=NotImplementedError()), "gymnasium cannot make {}: NotImplementedError."),
        (dict(error=RuntimeError("no display\nbuy one")), "cannot make {}: RuntimeError: no disp"),
        (dict(observation_space=spaces.Sequence(spaces.Discrete(2))), "{} must have observations"),
    ],
)
def test_unusable_ids_are_refused(
    arguments: dict[str, Any], said: str, register: Callable[..., str]
) -> None:
    name = register(**arguments)
    with pytest.raises(ValueError, match=re.escape(said.format(repr(name)))) as refusal:
        suites.check(name)
    assert "\n" not in str(refusal.value)


def test_an_environment_is_looked_at_once(
    monkeypatch: pytest.MonkeyPatch, register: Callable[..., str]
) -> None:
    made = []
    make = gymnasium.make

    def noted(env_id: str) -> gymnasium.Env:
        made.append(env_id)
        return make(env_id)

    monkeypatch.setattr(gymnasium, "make", noted)
    name = register()
    for _ in range(2):
        suites.check(name)
        assert gym.describe(name).observations.shape == (2,)
        assert not gym.describe(name).draws
        assert gym.describe(name).frames_per_second == 30
    assert made == [name.removeprefix("gym:")] * 2  # a second, whose spaces might be others
