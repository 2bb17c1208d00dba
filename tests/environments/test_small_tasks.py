"""Catch, the memory tasks with their memoryless optima, and how all of them begin anew."""

import itertools
from collections.abc import Callable

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from environments import small_tasks, suites
from tests.memory_marks import MEMORYLESS_OPTIMUM, PASS_MARK

Policy = Callable[[np.ndarray, np.random.Generator], np.ndarray]


class EveryStepPaysAndEnds(small_tasks.BatchedEnv):
    """Shows how many episodes the row has begun; each has a single step."""

    def __init__(self, num_envs: int):
        super().__init__(num_envs, spaces.Box(0, 99, (1,), np.float32), num_actions=2)
        self._begun = np.zeros(num_envs, np.int64)

    def _begin(self, rows: np.ndarray) -> None:
        self._begun[rows] += 1

    def _advance(self, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return 1 + actions, np.ones(self.num_envs, bool)

    def _observe(self) -> np.ndarray:
        return self._begun[:, None].astype(np.float32)


def test_the_step_that_only_resets_neither_pays_nor_ends() -> None:
    env = EveryStepPaysAndEnds(2)
    observations, _ = env.reset(seed=0)
    np.testing.assert_array_equal(observations, [[1], [1]])
    for episode in range(1, 4):
        observations, rewards, terminated, _, _ = env.step(np.array([0, 1]))
        np.testing.assert_array_equal(observations, [[episode], [episode]])
        np.testing.assert_array_equal(rewards, [1, 2])
        assert terminated.all()
        observations, rewards, terminated, _, _ = env.step(np.array([0, 1]))
        np.testing.assert_array_equal(observations, [[episode + 1], [episode + 1]])
        np.testing.assert_array_equal(rewards, [0, 0])
        assert not terminated.any()


class NaiveCatch:
    """One game, written with plain numbers."""

    def __init__(self, ball_column: int):
        self.ball = [0, ball_column]
        self.paddle = 2

    def step(self, action: int) -> tuple[float, bool]:
        self.paddle = min(max(self.paddle + {0: -1, 1: 0, 2: 1}[action], 0), 4)
        self.ball[0] += 1
        if self.ball[0] < 9:
            return 0.0, False
        return (1.0 if self.ball[1] == self.paddle else -1.0), True

    def board(self) -> np.ndarray:
        board = np.zeros((10, 5), np.uint8)
        board[self.ball[0]][self.ball[1]] = 255
        board[9][self.paddle] = 255
        return board


def test_equals_the_naive_game() -> None:
    env = suites.make("catch", 7, seed=3)
    observations, _ = env.reset()
    games = [NaiveCatch(int(board[0].argmax())) for board in observations]
    over = [False] * 7
    rng = np.random.default_rng(0)
    walls = outcomes = 0
    for _ in range(120):
        actions = rng.integers(3, size=7)
        walls += sum(
            game.paddle + action - 1 in (-1, 5) for game, action in zip(games, actions, strict=True)
        )
        observations, rewards, terminated, truncated, _ = env.step(actions)
        for row, game in enumerate(games):
            if over[row]:
                games[row] = NaiveCatch(int(observations[row][0].argmax()))
                expected, over[row] = 0.0, False
            else:
                expected, over[row] = game.step(actions[row])
            assert (rewards[row], terminated[row], truncated[row]) == (expected, over[row], False)
            np.testing.assert_array_equal(observations[row], games[row].board())
            outcomes |= {1.0: 1, -1.0: 2}.get(expected, 0)
    assert walls > 0
    assert outcomes == 3  # both were met


def test_first_observations_are_drawn_uniformly() -> None:
    boards, _ = suites.make("catch", 5000, seed=0).reset()
    np.testing.assert_array_equal(boards[:, 9], np.tile([0, 0, 255, 0, 0], (5000, 1)))
    np.testing.assert_allclose((boards[:, 0] == 255).mean(axis=0), 0.2, atol=0.03)
    cues, _ = suites.make("memory:recall", 8000, seed=0).reset()
    np.testing.assert_allclose(cues.mean(axis=0), [0.25] * 4 + [0], atol=0.02)


@pytest.mark.parametrize("actions", [[0, 3], [-1, 0], [0], [[0, 1]], [0.5, 1.0]])
def test_bad_actions_are_refused(actions: list) -> None:
    env = small_tasks.Catch(2)
    env.reset(seed=0)
    with pytest.raises(ValueError, match=r"Actions must lie in .*, got"):
        env.step(np.array(actions))


def test_large_rewards_are_those_of_catch_upside_down() -> None:
    plain, large = small_tasks.Catch(6), small_tasks.LargeRewards(6)
    board, _ = plain.reset(seed=4)
    flipped, _ = large.reset(seed=4)
    rng = np.random.default_rng(0)
    seen = set()
    for _ in range(60):
        np.testing.assert_array_equal(flipped, np.flip(board, axis=1))
        actions = rng.integers(3, size=6)
        board, rewards, terminated, *_ = plain.step(actions)
        flipped, large_rewards, large_terminated, *_ = large.step(actions)
        np.testing.assert_array_equal(large_rewards, 1000 * rewards)
        np.testing.assert_array_equal(large_terminated, terminated)
        seen |= set(large_rewards)
    assert seen == {-1000, 0, 1000}


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
    assert optimum == MEMORYLESS_OPTIMUM["recall"] == -0.5
    assert PASS_MARK["recall"] >= optimum + 1


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


def _cubic(parameters: np.ndarray) -> Policy:
    """Policies with the logit of going right cubic in position and angle; parameters [P, 10]."""

    def policy(observations: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        x, angle = observations[..., 0] / 2.4, observations[..., 1] / 0.21  # within [-1, 1]
        powers = [x**i * angle**j for i in range(4) for j in range(4 - i)]
        logits = np.einsum("pmf,pf->pm", np.stack(powers, axis=-1), parameters)
        return rng.random(logits.shape) < 1 / (1 + np.exp(-np.clip(logits, -30, 30)))

    return policy


def test_cartpole_memoryless_optimum_by_search() -> None:
    """A cross-entropy search; the mean return of its last mean over 1,000 episodes is taken.

    Random policies contain the deterministic ones as the limit of large logits.
    """
    rng = np.random.default_rng(0)
    mean, deviation = np.zeros(10), np.full(10, 5.0)
    for iteration in range(30):
        parameters = mean + deviation * rng.standard_normal((200, 10))
        scores = _mean_returns(_cubic(parameters), 200, 10, seed=iteration)
        best = parameters[np.argsort(scores)[-20:]]
        mean, deviation = best.mean(axis=0), best.std(axis=0) + 0.1
    found = float(_mean_returns(_cubic(mean[None]), 1, 1000, seed=777)[0])
    assert found == pytest.approx(MEMORYLESS_OPTIMUM["cartpole"], abs=3)
    assert PASS_MARK["cartpole"] > 2 * found


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
    assert PASS_MARK["cartpole"] < 500
