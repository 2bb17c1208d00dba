"""The DeepMind Control Suite and the Real-World RL suite, where they are installed."""

import contextlib
import importlib.util
from collections.abc import Sequence

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import SyncVectorEnv, VectorEnv

from environments import dm, suites
from environments.control import environment as control
from environments.control import renderer
from environments.control import tasks as control_tasks
from environments.dm import make_environment_spec

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("dm_control") is None,
    reason="dm_control is not installed: `make setup-control`",
)
REAL_WORLD = pytest.mark.skipif(
    importlib.util.find_spec("realworldrl_suite") is None,
    reason="realworldrl_suite is not installed: docs/control.md",
)
TASKS = sorted({*control_tasks.CONTROL} - {"quadruped/escape"})
FIRST_OF_A_DOMAIN = {task.partition("/")[0]: task for task in reversed(TASKS)}.values()
STREAMS = [
    "control:cartpole/swingup",
    "control:quadruped/fetch",
    pytest.param("rwrl:cartpole/swingup/hard", marks=REAL_WORLD),
]


def _play(name: str, *, seed: int, steps: int = 12) -> list[np.ndarray]:
    """Plays two copies and gives all that they show and pay."""
    with contextlib.closing(suites.make(name, 2, seed=seed)) as env:
        seen = [env.reset()[0].copy()]
        env.action_space.seed(0)
        for _ in range(steps):
            observations, rewards, *_ = env.step(env.action_space.sample())
            seen += [observations.copy(), rewards]
    return seen


def _only(env: VectorEnv) -> gymnasium.Env:
    """The one copy inside all wrappers."""
    copies = env.unwrapped
    assert isinstance(copies, SyncVectorEnv)
    return copies.envs[0]


def _differ(first: Sequence[np.ndarray], second: Sequence[np.ndarray]) -> bool:
    return not all(map(np.array_equal, first, second))


def test_the_names_are_the_suites() -> None:
    with renderer.without():
        from dm_control import suite
    assert sorted(map("/".join, suite.BENCHMARKING)) == sorted(control_tasks.BENCHMARKING)
    names = {"/".join(task) for task in suite.ALL_TASKS}
    assert names - set(control_tasks.CONTROL) == {"lqr/lqr_2_1", "lqr/lqr_6_2"}
    assert set(control_tasks.CONTROL) < names


@pytest.mark.parametrize(
    "task",
    [
        pytest.param(task, marks=[pytest.mark.slow] * (task not in FIRST_OF_A_DOMAIN))
        for task in TASKS
    ],
)
def test_every_task_starts_and_steps(task: str) -> None:
    with contextlib.closing(suites.make(f"control:{task}", 1, seed=0)) as env:
        assert env.reset()[0].shape == env.observation_space.shape
        for _ in range(3):
            observation, reward, terminated, truncated, infos = env.step(env.action_space.sample())
            assert (observation.dtype, reward.dtype) == (np.float32, np.float32)
            assert np.isfinite(observation).all()
            assert 0 <= reward[0] <= 1
            assert [terminated[0], truncated[0]] == [False, False]
            assert "lost" not in infos


@REAL_WORLD
@pytest.mark.parametrize("task", control_tasks.RWRL)
def test_every_challenge_starts_and_steps(task: str) -> None:
    domain, _, level = task.split("/")
    with contextlib.closing(suites.make(f"rwrl:{task}", 1, seed=0)) as env:
        env.reset()
        observation, *_, infos = env.step(env.action_space.sample())
        assert np.isfinite(observation).all()
        assert "lost" not in infos
        if domain == "cartpole":  # five numbers, and what a level adds
            more = dict(none=0, easy=10, medium=20, hard=50)[level]
            assert observation.shape == (1, 5 + more)


@pytest.mark.parametrize("task", ["finger/turn_easy", "manipulator/bring_ball"])
def test_scalars_and_matrices_are_flattened_in_the_order_of_their_names(task: str) -> None:
    with contextlib.closing(control.Task(task)) as single:
        shown, _ = single.reset(seed=3)
        expected = np.concatenate([np.ravel(shown[name]) for name in sorted(shown)])
    assert {np.ndim(part) for part in shown.values()} >= ({0} if "finger" in task else {2})
    with contextlib.closing(control.make("control", task, 1)) as env:
        flat, _ = _only(env).reset(seed=3)
    np.testing.assert_array_equal(flat, expected.astype(np.float32))


def test_actions_have_the_tasks_own_bounds() -> None:
    actions = make_environment_spec("control:quadruped/walk").actions
    assert (actions.shape, actions.dtype) == ((12,), np.float32)
    assert (actions.minimum.min(), actions.maximum.max()) == (-1, np.float32(1.1))
    with contextlib.closing(suites.make("control:quadruped/walk", 1, seed=0)) as env:
        env.reset()
        for bound in (actions.minimum, actions.maximum):
            env.step(bound[np.newaxis])
            task = _only(env).unwrapped
            assert isinstance(task, control.Task)
            assert isinstance(native := task.action_space, spaces.Box)
            got = task._environment.physics.data.ctrl
            np.testing.assert_allclose(got, bound, rtol=1e-6)
            assert ((native.low <= got) & (got <= native.high)).all()


def test_a_thousand_steps_end_by_truncation_with_discount_one() -> None:
    with contextlib.closing(dm.make("control:point_mass/easy")) as env:
        env.reset()
        still = np.zeros(env.action_spec().shape, np.float32)
        steps = [env.step(still) for _ in range(1000)]
        assert env.step(still).first()
    assert [step.last() for step in steps] == [False] * 999 + [True]
    assert steps[-1].discount == 1


@pytest.mark.parametrize("name", STREAMS)
def test_the_same_seed_gives_the_same_stream(name: str) -> None:
    """A seed fixes the stream of another environment, and of the same one again."""
    first = _play(name, seed=5)
    assert not _differ(first, _play(name, seed=5))
    assert _differ(first, _play(name, seed=6))
    assert _differ([first[0][0]], [first[0][1]])  # of two copies
    with contextlib.closing(suites.make(name, 1, seed=0)) as env:
        streams = []
        for seed in (7, 7, None):
            env.action_space.seed(0)
            seen = [env.reset(seed=seed)[0].copy()]
            streams.append(seen + [env.step(env.action_space.sample())[0] for _ in range(8)])
    assert not _differ(*streams[:2])
    assert _differ(*streams[1:])


@REAL_WORLD
def test_a_challenges_noise_leaves_the_common_stream_alone() -> None:
    np.random.seed(0)
    expected = np.random.RandomState(0).uniform(size=3)
    _play("rwrl:cartpole/swingup/hard", seed=1, steps=3)
    np.testing.assert_array_equal(np.random.uniform(size=3), expected)
