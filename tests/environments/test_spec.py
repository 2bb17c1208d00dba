"""Environments and suites in Acme's terms."""

from typing import Any

import numpy as np
import pytest
from acme import specs

from environments import atari
from environments.dm import make_environment_spec


def test_full_action_space_reaches_atari_and_its_spec() -> None:
    assert make_environment_spec("atari:pong").actions.num_values == 18
    minimal = make_environment_spec("atari:pong", full_action_space=False)
    assert minimal.actions.num_values == 6


def test_the_spec_of_a_suite_is_that_of_its_tasks() -> None:
    assert make_environment_spec("catch:large_rewards,catch") == (make_environment_spec("catch"))
    assert make_environment_spec("atari57") == make_environment_spec("atari:pong")
    # Demon Attack and Space Invaders happen to use the same number of actions.
    alike = make_environment_spec(
        "atari:demon_attack,atari:space_invaders", full_action_space=False
    )
    assert alike.actions.num_values == 6


def test_the_spec_of_57_games_loads_one(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = []

    class Noted(atari.Atari):
        def __init__(self, game: str, *args: Any, **kwargs: Any) -> None:
            loaded.append(game)
            super().__init__(game, *args, **kwargs)

    monkeypatch.setattr(atari, "Atari", Noted)
    make_environment_spec("atari57")
    assert loaded == ["alien"]


def test_bounded_actions_are_a_bounded_array() -> None:
    spec = make_environment_spec("gym:Pendulum-v1").actions
    assert type(spec) is specs.BoundedArray
    assert (spec.shape, spec.dtype, spec.name) == ((1,), np.float32, "action")
    np.testing.assert_array_equal([spec.minimum, spec.maximum], [[-2], [2]])


def test_discrete_actions_are_a_discrete_array() -> None:
    spec = make_environment_spec("gym:CartPole-v1").actions
    assert type(spec) is specs.DiscreteArray
    assert (spec.num_values, spec.dtype) == (2, np.int32)
