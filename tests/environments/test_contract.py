"""Every kind of environment keeps these promises, checked on one or two names of each kind."""

from typing import Any, NamedTuple

import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, VectorEnv

from environments import suites
from environments.dm import make_environment_spec

NUM_ENVS = 3
SEED = 11
# Random play in each lasts at most so many steps until every row has ended an episode.
STEPS = {
    "catch,catch:large_rewards": 30,
    "memory:recall": 30,
    "memory:cartpole": 150,
    "atari:breakout": 500,
    "gym:CartPole-v1": 150,
    "gym:FrozenLake-v1": 100,
}
every_kind = pytest.mark.parametrize("name", STEPS)


def _make(name: str, num_envs: int = NUM_ENVS, *, seed: int = SEED) -> VectorEnv:
    """Makes environments; a suite's tasks get equal parts."""
    tasks = suites.tasks(name)
    each = [tasks[row * len(tasks) // num_envs] for row in range(num_envs)]
    return suites.make_each(each, seed=seed)


class Stream(NamedTuple):
    """A recorded run; the first axis is time, and the reset fills row 0 of `observations` only."""

    observations: np.ndarray  # [T + 1, N, ...]
    rewards: np.ndarray  # [T, N]
    terminated: np.ndarray  # [T, N]
    truncated: np.ndarray  # [T, N]

    @property
    def ended(self) -> np.ndarray:
        return self.terminated | self.truncated


def _actions(env: VectorEnv, steps: int, seed: int) -> np.ndarray:
    assert isinstance(env.single_action_space, spaces.Discrete)
    rng = np.random.default_rng(seed)
    return rng.integers(env.single_action_space.n, size=(steps, env.num_envs), dtype=np.int32)


def _play(env: VectorEnv, actions: np.ndarray, **reset: Any) -> Stream:
    first, _ = env.reset(**reset)
    rows: list[Any] = [env.step(action) for action in actions]
    observations: list[np.ndarray] = [first, *(row[0] for row in rows)]
    return Stream(
        np.stack(observations),
        *(np.stack([row[field] for row in rows]) for field in (1, 2, 3)),
    )


def _record(name: str, seed: Any = SEED, actions_seed: int = 0) -> Stream:
    env = _make(name, seed=seed)
    stream = _play(env, _actions(env, STEPS[name], actions_seed))
    env.close()
    return stream


@every_kind
def test_spaces_shapes_types_and_specs(name: str) -> None:
    env, spec = _make(name), make_environment_spec(name)
    box = env.single_observation_space
    assert env.num_envs == NUM_ENVS
    assert env.metadata["autoreset_mode"] is AutoresetMode.NEXT_STEP
    assert isinstance(box, spaces.Box)
    assert isinstance(env.single_action_space, spaces.Discrete)
    assert env.single_action_space.start == 0
    assert spec.actions.num_values == env.single_action_space.n
    assert spec.actions.dtype == np.int32
    assert (spec.discounts.minimum, spec.discounts.maximum) == (0, 1)
    assert box.dtype == np.uint8 or (box.dtype == np.float32 and len(box.shape) == 1)
    observations, _ = env.reset()
    for action in _actions(env, 20, 0):
        assert env.observation_space.contains(observations)
        assert observations.shape == (NUM_ENVS, *box.shape)
        observations, rewards, terminated, truncated, _ = env.step(action)
        for row in range(NUM_ENVS):
            spec.observations.validate(observations[row])
            spec.rewards.validate(rewards[row])
        assert (rewards.shape, rewards.dtype) == ((NUM_ENVS,), np.float32)
        assert (terminated.shape, terminated.dtype) == ((NUM_ENVS,), np.bool_)
        assert (truncated.shape, truncated.dtype) == ((NUM_ENVS,), np.bool_)
    env.close()


@every_kind
def test_arrays_handed_out_belong_to_the_caller(name: str) -> None:
    env = _make(name)
    actions = _actions(env, 60, 0)
    expected = _play(env, actions, seed=SEED)
    handed_out = [env.reset(seed=SEED)[0]]
    handed_out[0][:] = 1
    for time, action in enumerate(actions):
        observations, rewards, terminated, truncated, _ = env.step(action)
        np.testing.assert_array_equal(observations, expected.observations[time + 1])
        np.testing.assert_array_equal(terminated, expected.terminated[time])
        for array in (observations, rewards, terminated, truncated):
            array[:] = 1
            handed_out.append(array)
    assert all((array == 1).all() for array in handed_out)  # and are never written to again
    env.close()


@every_kind
def test_step_after_the_end_only_resets(name: str) -> None:
    stream = _record(name)
    assert stream.ended.any(axis=0).all()
    after = np.roll(stream.ended, 1, axis=0)  # [T, N]
    after[0] = False
    assert after.any()
    np.testing.assert_array_equal(stream.rewards[after], 0)
    assert not stream.ended[after].any()


@every_kind
def test_step_after_the_end_ignores_the_action(name: str) -> None:
    env = _make(name, 1)
    actions = _actions(env, STEPS[name], 0)
    end = int(np.argmax(_play(env, actions, seed=SEED).ended[:, 0]))
    first_observations = set()
    assert isinstance(env.single_action_space, spaces.Discrete)
    for action in range(int(env.single_action_space.n)):
        stream = _play(env, np.append(actions[: end + 1], [[action]], axis=0), seed=SEED)
        assert stream.ended[end, 0]
        first_observations.add(stream.observations[-1].tobytes())
    assert len(first_observations) == 1
    env.close()


@every_kind
def test_same_seed_same_stream(name: str) -> None:
    first = _record(name)
    for seed in (SEED, np.int64(SEED), np.uint32(SEED)):
        for expected, actual in zip(first, _record(name, seed), strict=True):
            np.testing.assert_array_equal(actual, expected)


@every_kind
def test_other_seeds_and_rows_other_streams(name: str) -> None:
    env = _make(name)
    alike = np.repeat(_actions(env, STEPS[name], 0)[:, :1], NUM_ENVS, axis=1)
    observations = _play(env, alike).observations  # [T + 1, N, ...]
    other = _play(env, alike, seed=SEED + 1).observations
    env.close()
    streams = {run[:, row].tobytes() for run in (observations, other) for row in range(NUM_ENVS)}
    assert len(streams) == 2 * NUM_ENVS


@every_kind
def test_resets(name: str) -> None:
    """The first uses make's seed, a later one goes on, and a seed begins anew, after an end too."""
    env = _make(name)
    actions = _actions(env, STEPS[name], 0)
    made = _play(env, actions)
    continued = _play(env, actions)
    end = int(np.argmax(made.ended.any(axis=1)))
    assert _play(env, actions[: end + 1], seed=SEED).ended[-1].any()
    again = _play(env, actions, seed=np.int64(SEED))
    env.close()
    np.testing.assert_array_equal(again.observations, made.observations)
    assert (continued.observations != made.observations).any()
