"""Environments in Acme's terms, behind dm_env's interface, and dm_env's behind gymnasium's."""

from collections.abc import Callable
from typing import Any

import dm_env
import numpy as np
import pytest
from acme import specs as acme_specs
from dm_env import specs
from gymnasium import spaces

from environments import atari, dm, suites
from environments.copies.from_dm import FromDm, space_of
from environments.dm import make_environment_spec


def test_full_action_space_reaches_atari_and_its_spec() -> None:
    assert make_environment_spec("atari:pong").actions.num_values == 18
    minimal = make_environment_spec("atari:pong", full_action_space=False)
    assert minimal.actions.num_values == 6


def test_the_spec_of_a_suite_is_that_of_its_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    assert make_environment_spec("catch:large_rewards,catch") == (make_environment_spec("catch"))
    # Demon Attack and Space Invaders happen to use the same number of actions.
    alike = make_environment_spec(
        "atari:demon_attack,atari:space_invaders", full_action_space=False
    )
    assert alike.actions.num_values == 6
    loaded = []

    class Noted(atari.Atari):
        def __init__(self, game: str, *args: Any, **kwargs: Any) -> None:
            loaded.append(game)
            super().__init__(game, *args, **kwargs)

    monkeypatch.setattr(atari, "Atari", Noted)
    assert make_environment_spec("atari57") == make_environment_spec("atari:pong")
    assert loaded == ["alien", "pong"]


def test_actions_are_discrete_or_a_bounded_array() -> None:
    spec = make_environment_spec("gym:Pendulum-v1").actions
    assert type(spec) is acme_specs.BoundedArray
    assert (spec.shape, spec.dtype, spec.name) == ((1,), np.float32, "action")
    np.testing.assert_array_equal([spec.minimum, spec.maximum], [[-2], [2]])
    spec = make_environment_spec("gym:CartPole-v1").actions
    assert type(spec) is acme_specs.DiscreteArray
    assert (spec.num_values, spec.dtype) == (2, np.int32)


@pytest.mark.parametrize("name", ["catch", "memory:cartpole", "gym:CartPole-v1"])
def test_it_plays_the_episodes_of_the_vector_environment(name: str) -> None:
    environment = dm.make(name, seed=3)
    vector = suites.make(name, 1, seed=3)
    rng = np.random.default_rng(0)
    timestep = environment.reset()
    observation = vector.reset()[0]
    for _ in range(300):
        np.testing.assert_array_equal(timestep.observation, observation[0])
        environment.observation_spec().validate(timestep.observation)
        action = rng.integers(environment.action_spec().num_values)
        timestep = environment.reset() if timestep.last() else environment.step(action)
        observation, reward, terminated, truncated, _ = vector.step(np.array([action]))
        assert timestep.last() == (terminated[0] or truncated[0])
        if not timestep.first():
            assert timestep.reward == reward[0]
            assert timestep.discount == 1.0 - terminated[0]


def test_a_time_limit_keeps_the_discount() -> None:
    environment = dm.make("gym:MountainCar-v0")  # 200 steps without reaching the goal
    timestep = environment.reset()
    while not timestep.last():
        timestep = environment.step(1)
    assert timestep.discount == 1.0


def test_a_step_outside_an_episode_begins_one_and_one_can_be_given_up() -> None:
    environment = dm.make("catch", seed=1)
    assert environment.step(0).first()
    assert environment.step(0).step_type == dm_env.StepType.MID
    assert environment.reset().observation[0].any()  # the ball is at the top again


class Scripted(dm_env.Environment):
    """Plays out a list of time steps, and remembers what it was given."""

    def __init__(self, observation: Any, action: Any, script: list[dm_env.TimeStep]) -> None:
        self._observation, self._action, self._script = observation, action, script
        self.given: list[Any] = []
        self.closed = False

    def reset(self) -> dm_env.TimeStep:
        return dm_env.restart(np.zeros(2))

    def step(self, action: Any) -> dm_env.TimeStep:
        self._action.validate(action)
        self.given.append(action)
        return self._script[len(self.given) - 1]

    def observation_spec(self) -> Any:
        return self._observation

    def action_spec(self) -> Any:
        return self._action

    def close(self) -> None:
        self.closed = True


VECTOR, CHOICE = specs.BoundedArray((2,), np.float64, -1, 1), specs.DiscreteArray(3)
BYTES = spaces.Box(0, 255, (4, 3), np.uint8)
BITS: spaces.Space = spaces.Box(0, 1, (2,), np.bool_)


@pytest.mark.parametrize(
    ("spec", "space"),
    [
        (specs.Array((2,), np.float64), spaces.Box(-np.inf, np.inf, (2,), np.float64)),
        (specs.Array((4, 3), np.uint8), BYTES),
        (specs.Array((), np.int32), spaces.Box(-(2**31), 2**31 - 1, (), np.int32)),
        (specs.Array((2,), bool), BITS),
        (
            specs.BoundedArray((2,), np.float32, -1, [1, 2]),
            spaces.Box(np.array([-1, -1], np.float32), np.array([1, 2], np.float32)),
        ),
        (CHOICE, spaces.Discrete(3, dtype=np.int32)),
        (
            {"a": specs.Array((4, 3), np.uint8), "b": {"c": CHOICE}},
            spaces.Dict(a=BYTES, b=spaces.Dict(c=spaces.Discrete(3, dtype=np.int32))),
        ),
        (
            [specs.Array((4, 3), np.uint8), (specs.StringArray(()),)],
            spaces.Tuple([BYTES, spaces.Tuple([spaces.Text(10_000)])]),
        ),
    ],
)
def test_specs_become_spaces(spec: Any, space: spaces.Space) -> None:
    assert space_of(spec) == space
    env = FromDm(Scripted(spec, spec, []))
    assert (env.observation_space, env.action_space) == (space, space)


@pytest.mark.parametrize("spec", [specs.StringArray((2,)), {"a": [3]}, None])
def test_other_specs_are_refused(spec: Any) -> None:
    with pytest.raises(ValueError, match="must be an Array of numbers, a text, or a dictionary of"):
        FromDm(Scripted(spec, VECTOR, []))


SEEN = np.ones(2)


@pytest.mark.parametrize(
    ("timestep", "terminated", "truncated"),
    [
        (dm_env.transition(1.5, SEEN), False, False),
        (dm_env.transition(1.5, SEEN, discount=0.0), False, False),  # goes on all the same
        (dm_env.termination(1.5, SEEN), True, False),
        (dm_env.truncation(1.5, SEEN), False, True),
        (dm_env.truncation(1.5, SEEN, discount=0.5), False, True),
    ],
)
def test_discounts_become_ends(
    timestep: dm_env.TimeStep, terminated: bool, truncated: bool
) -> None:
    scripted = Scripted(specs.Array((2,), np.float64), CHOICE, [timestep])
    env = FromDm(scripted)
    observation, infos = env.reset(seed=1)
    np.testing.assert_array_equal(observation, [0, 0])
    assert infos == {}
    outcome = env.step(np.int64(2))
    assert outcome[1:] == (1.5, terminated, truncated, {})
    assert type(outcome[2]) is type(outcome[3]) is bool
    np.testing.assert_array_equal(outcome[0], SEEN)
    env.close()
    assert scripted.closed


class OfBsuite(Scripted):
    """Begins its episodes with a number that is drawn, by chance of its own or of another's."""

    def __init__(self, raw_env: Any = None) -> None:
        super().__init__(specs.Array((), np.int64), CHOICE, [])
        if raw_env is None:
            self._rng = np.random.RandomState(0)
        else:
            self.raw_env = raw_env

    def reset(self) -> dm_env.TimeStep:
        raw: Any = getattr(self, "raw_env", self)
        return dm_env.restart(raw._rng.randint(2**31))


@pytest.mark.parametrize("make", [OfBsuite, lambda: OfBsuite(OfBsuite())])
def test_bsuites_copies_have_chances_of_their_own(make: Callable[[], OfBsuite]) -> None:
    def begun(seed: int | None) -> list[int]:
        env = FromDm(make())
        return [env.reset(seed=each)[0] for each in (seed, None)]

    of_seeds = [begun(seed) for seed in (None, 1, 2, 2**32 + 2)]
    assert len({drawn for each in of_seeds for drawn in each}) == 6
    assert of_seeds == [begun(seed) for seed in (None, 1, 2, 2)]


def test_actions_have_the_specs_type() -> None:
    script = [dm_env.transition(0.0, SEEN)] * 2
    numbers, vectors = Scripted(VECTOR, CHOICE, script), Scripted(VECTOR, VECTOR, script)
    FromDm(numbers).step(np.int64(1))
    FromDm(vectors).step(np.array([0.5, 1], np.float32))
    assert isinstance(numbers.given[0], np.int32)
    assert vectors.given[0].dtype == np.float64
