"""dm_env's environments as gymnasium's: specs become spaces, discounts become ends."""

from typing import Any

import dm_env
import numpy as np
import pytest
from dm_env import specs
from gymnasium import spaces

from environments import dm
from environments.copies.from_dm import FromDm, space_of


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


SPECS = {
    "floats": specs.Array((2,), np.float64),
    "bytes": specs.Array((4, 3), np.uint8),
    "integers": specs.Array((), np.int32),
    "switches": specs.Array((2,), bool),
    "bounded": specs.BoundedArray((2,), np.float32, -1, [1, 2]),
    "choice": specs.DiscreteArray(5),
}
SPACES: dict[str, spaces.Space] = {
    "floats": spaces.Box(-np.inf, np.inf, (2,), np.float64),
    "bytes": spaces.Box(0, 255, (4, 3), np.uint8),
    "integers": spaces.Box(-(2**31), 2**31 - 1, (), np.int32),
    "switches": spaces.Box(0, 1, (2,), np.bool_),
    "bounded": spaces.Box(np.array([-1, -1], np.float32), np.array([1, 2], np.float32)),
    "choice": spaces.Discrete(5, dtype=np.int32),
}
VECTOR, CHOICE = specs.BoundedArray((2,), np.float64, -1, 1), specs.DiscreteArray(3)


@pytest.mark.parametrize("name", SPECS)
def test_specs_become_spaces(name: str) -> None:
    env = FromDm(Scripted(SPECS[name], VECTOR, []))
    assert env.observation_space == SPACES[name]
    assert FromDm(Scripted(VECTOR, SPECS[name], [])).action_space == SPACES[name]


def test_a_dictionary_of_specs_becomes_one_of_spaces() -> None:
    nested = {"a": SPECS["bytes"], "b": {"c": CHOICE}}
    env = FromDm(Scripted(nested, VECTOR, []))
    assert env.observation_space == spaces.Dict(
        a=SPACES["bytes"], b=spaces.Dict(c=spaces.Discrete(3, dtype=np.int32))
    )


def test_lists_become_tuples_and_texts_texts() -> None:
    space = space_of([SPECS["bytes"], (specs.StringArray(()),)])
    assert space == spaces.Tuple([SPACES["bytes"], spaces.Tuple([spaces.Text(10_000)])])


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
    env = FromDm(Scripted(specs.Array((2,), np.float64), CHOICE, [timestep]))
    observation, infos = env.reset(seed=1)
    np.testing.assert_array_equal(observation, [0, 0])
    assert infos == {}
    outcome = env.step(np.int64(2))
    assert outcome[1:] == (1.5, terminated, truncated, {})
    assert type(outcome[2]) is type(outcome[3]) is bool
    np.testing.assert_array_equal(outcome[0], SEEN)


def test_actions_have_the_specs_type() -> None:
    script = [dm_env.transition(0.0, SEEN)] * 2
    numbers, vectors = Scripted(VECTOR, CHOICE, script), Scripted(VECTOR, VECTOR, script)
    FromDm(numbers).step(np.int64(1))
    FromDm(vectors).step(np.array([0.5, 1], np.float32))
    assert isinstance(numbers.given[0], np.int32)
    assert vectors.given[0].dtype == np.float64


def test_it_closes() -> None:
    environment = Scripted(VECTOR, CHOICE, [])
    FromDm(environment).close()
    assert environment.closed


def test_there_and_back_it_plays_the_same() -> None:
    there, back = dm.make("catch", seed=3), FromDm(dm.make("catch", seed=3))
    np.testing.assert_array_equal(there.reset().observation, back.reset()[0])
    for _ in range(9):
        timestep, outcome = there.step(1), back.step(1)
        np.testing.assert_array_equal(timestep.observation, outcome[0])
        assert (timestep.reward, timestep.last()) == outcome[1:3]
