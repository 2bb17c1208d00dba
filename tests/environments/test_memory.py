"""The memory tasks: their course, their memoryless optima, and that memory reaches the mark."""

import itertools
from collections.abc import Callable

import gymnasium
import numpy as np
import pytest

from environments import small_tasks, suites

Policy = Callable[[np.ndarray, np.random.Generator], np.ndarray]


def test_recall_shows_the_cue_once_and_pays_at_the_query() -> None:
    env = small_tasks.Recall(2 * small_tasks.NUM_CUES)
    observations, _ = env.reset(seed=0)
    cues = observations.argmax(axis=1)
    assert len(set(cues)) > 1
    np.testing.assert_array_equal(observations, np.eye(5)[cues])
    actions = cues.copy()
    actions[::2] = (cues[::2] + 1) % small_tasks.NUM_CUES
    for time in range(1, small_tasks.DELAY + 2):
        observations, rewards, terminated, _, _ = env.step(actions)
        blank = np.zeros(5) if time <= small_tasks.DELAY else np.eye(5)[4]
        np.testing.assert_array_equal(observations, np.tile(blank, (len(cues), 1)))
        assert not rewards.any()
        assert not terminated.any()
    _, rewards, terminated, truncated, _ = env.step(actions)
    np.testing.assert_array_equal(rewards, np.tile([-1, 1], small_tasks.NUM_CUES))
    assert terminated.all()
    assert not truncated.any()


def test_recall_memoryless_optimum_by_enumeration() -> None:
    """Plays every deterministic memoryless policy until it has met every cue.

    Deterministic ones suffice: the expected return is linear in the distribution of the action at
    the query, which is the only one that counts, so its maximum lies at a corner.
    """
    num_cues = small_tasks.NUM_CUES
    symbols = num_cues + 2  # the cues, the query, a blank
    policies = np.array(list(itertools.product(range(num_cues), repeat=symbols)))  # [P, symbols]
    env = suites.make("memory:recall", len(policies), seed=0)
    rows = np.arange(len(policies))
    returns = np.full((len(policies), num_cues), np.nan)
    observations, _ = env.reset()
    while np.isnan(returns).any():
        cues = observations.argmax(axis=1)
        episode_returns = np.zeros(len(policies))
        for _ in range(small_tasks.DELAY + 2):
            blank = ~observations.any(axis=1)
            symbol = np.where(blank, symbols - 1, observations.argmax(axis=1))
            observations, rewards, terminated, _, _ = env.step(policies[rows, symbol])
            episode_returns += rewards
        assert terminated.all()
        seen = returns[rows, cues]
        assert (np.isnan(seen) | (seen == episode_returns)).all()
        returns[rows, cues] = episode_returns
        observations, *_ = env.step(np.zeros(len(policies), np.int64))
    optimum = returns.mean(axis=1).max()  # the cues are equally likely
    task = small_tasks.MEMORY["recall"]
    assert optimum == task.memoryless_optimum == -0.5
    assert task.pass_mark >= optimum + 1


def test_recall_cues_are_equally_likely() -> None:
    observations, _ = suites.make("memory:recall", 8000, seed=0).reset()
    np.testing.assert_allclose(observations.mean(axis=0), [0.25] * 4 + [0], atol=0.02)


def test_recall_can_be_carried_by_the_previous_action() -> None:
    """Why memoryless means the observation alone, and a baseline must not see its last action."""
    env = suites.make("memory:recall", 20, seed=0)
    observations, _ = env.reset()
    actions = np.zeros(20, np.int64)
    for _ in range(small_tasks.DELAY + 2):
        cue = observations[:, : small_tasks.NUM_CUES]
        actions = np.where(cue.any(axis=1), cue.argmax(axis=1), actions)
        observations, rewards, *_ = env.step(actions)
    np.testing.assert_array_equal(rewards, 1)


def test_cartpole_is_gymnasiums_without_velocities() -> None:
    whole = gymnasium.make_vec("CartPole-v1", 4, vectorization_mode="vector_entry_point")
    env = small_tasks.PositionCartPole(4)
    rng = np.random.default_rng(0)
    expected = whole.reset(seed=5)[0]
    actual = env.reset(seed=5)[0]
    ends = 0
    for _ in range(100):
        np.testing.assert_array_equal(actual, expected[:, [0, 2]])
        actions = rng.integers(2, size=4)
        expected, *expected_rest, _ = whole.step(actions)
        actual, *actual_rest, _ = env.step(actions)
        np.testing.assert_array_equal(actual_rest, expected_rest)
        ends += actual_rest[1].sum()
    assert ends > 0


def _mean_returns(policy: Policy, policies: int, episodes: int, seed: int) -> np.ndarray:
    """Plays one episode in each of P x M rows; `policy` maps [P, M, 2] to actions [P, M]."""
    env = small_tasks.PositionCartPole(policies * episodes)
    rng = np.random.default_rng(seed)
    observations, _ = env.reset(seed=seed)
    returns = np.zeros(env.num_envs)
    alive = np.ones(env.num_envs, bool)
    while alive.any():
        actions = policy(observations.reshape(policies, episodes, 2), rng)
        observations, rewards, terminated, truncated, _ = env.step(actions.ravel().astype(int))
        returns += rewards * alive
        alive &= ~(terminated | truncated)
    return returns.reshape(policies, episodes).mean(axis=1)


def _bernoulli(logits: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return rng.random(logits.shape) < 1 / (1 + np.exp(-np.clip(logits, -30, 30)))


def _cubic(parameters: np.ndarray) -> Policy:
    """Policies with the logit of going right cubic in position and angle; parameters [P, 10]."""

    def policy(observations: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        x, angle = observations[..., 0] / 2.4, observations[..., 1] / 0.21  # within [-1, 1]
        powers = [x**i * angle**j for i in range(4) for j in range(4 - i)]
        return _bernoulli(np.einsum("pmf,pf->pm", np.stack(powers, axis=-1), parameters), rng)

    return policy


def _table(parameters: np.ndarray) -> Policy:
    """Policies with one logit for each cell of an 8 x 8 grid; parameters [P, 64]."""

    def policy(observations: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        column = np.digitize(observations[..., 0], np.linspace(-0.3, 0.3, 9)[1:-1])
        row = np.digitize(observations[..., 1], np.linspace(-0.21, 0.21, 9)[1:-1])
        return _bernoulli(np.take_along_axis(parameters, 8 * row + column, axis=1), rng)

    return policy


def _search(family: Callable[[np.ndarray], Policy], size: int, iterations: int = 30) -> float:
    """Cross-entropy search; returns the mean return of the last mean over 1,000 episodes."""
    rng = np.random.default_rng(0)
    mean, deviation = np.zeros(size), np.full(size, 5.0)
    for iteration in range(iterations):
        parameters = mean + deviation * rng.standard_normal((200, size))
        scores = _mean_returns(family(parameters), 200, 10, seed=iteration)
        best = parameters[np.argsort(scores)[-20:]]
        mean, deviation = best.mean(axis=0), best.std(axis=0) + 0.1
    return float(_mean_returns(family(mean[None]), 1, 1000, seed=777)[0])


def test_cartpole_memoryless_optimum_by_search() -> None:
    """Random policies contain the deterministic ones as the limit of large logits."""
    found = max(_search(_cubic, 10), _search(_table, 64))
    task = small_tasks.MEMORY["cartpole"]
    assert found == pytest.approx(task.memoryless_optimum, abs=3)
    assert task.pass_mark > 2 * found


def test_cartpole_with_a_memory_reaches_the_time_limit() -> None:
    """One remembered observation is enough: its difference stands in for the velocities."""
    env = suites.make("memory:cartpole", 50, seed=0)
    observations, _ = env.reset()
    previous = observations
    for time in range(500):
        velocities = (observations - previous) / 0.02
        lean = observations @ [0.3, 1.0] + velocities @ [0.3, 0.5]
        previous = observations
        observations, _, terminated, truncated, _ = env.step((lean > 0).astype(int))
        assert not terminated.any()
        assert truncated.all() == (time == 499)
    assert small_tasks.MEMORY["cartpole"].pass_mark < 500
