"""The dm_env adapter plays exactly what the vector environment plays."""

import dm_env
import numpy as np
import pytest

from environments import dm, suites


@pytest.mark.parametrize("name", ["catch", "memory:cartpole", "gym:CartPole-v1"])
def test_it_plays_the_episodes_of_the_vector_environment(name: str) -> None:
    environment = dm.make(name, seed=3)
    vector = suites.make(name, 1, seed=3)
    rng = np.random.default_rng(0)
    timestep = environment.reset()
    observation = vector.reset()[0]
    for _ in range(300):
        np.testing.assert_array_equal(timestep.observation, observation[0])
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


def test_a_step_outside_an_episode_begins_one() -> None:
    environment = dm.make("catch")
    assert environment.step(0).first()
    timestep = environment.step(0)
    assert timestep.step_type == dm_env.StepType.MID


def test_an_unfinished_episode_can_be_given_up() -> None:
    environment = dm.make("catch", seed=1)
    environment.reset()
    environment.step(0)
    assert environment.reset().observation[0].any()  # the ball is at the top again


def test_observations_and_actions_fit_their_specs() -> None:
    environment = dm.make("memory:recall")
    environment.observation_spec().validate(environment.reset().observation)
    environment.action_spec().validate(np.int32(0))
