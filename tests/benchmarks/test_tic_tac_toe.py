"""The game's rules, its rival, and an agent that learns it by the mask."""

import numpy as np
import pytest

from benchmarks.tic_tac_toe import Masked, MaskedGreedy, Unmasked
from r2d2.agent import Config, make
from tests import training


def _board(*rows: str) -> np.ndarray:
    return np.array([{"x": 1, "o": -1, ".": 0}[cell] for cell in "".join(rows)], np.int8)


@pytest.mark.parametrize(
    ("rows", "action", "reward", "ends"),
    [
        (("xx.", "oo.", "..."), 2, 1, True),
        (("xx.", "oo.", "..."), 6, -1, True),  # the rival completes its line
        (("x..", ".o.", "..."), 1, 0, False),
        (("xox", "xoo", "ox."), 8, 0, True),  # a draw
        (("x.o", ".xo", "..."), 8, 1, True),
        (("o.x", ".x.", "o.."), 8, -1, True),
    ],
)
def test_moves_and_answers(rows: tuple[str, ...], action: int, reward: int, ends: bool) -> None:
    env = MaskedGreedy()
    env.reset(seed=0)
    env.board = _board(*rows)
    seen, paid, terminated, truncated, _ = env.step(action)
    assert (paid, terminated, truncated) == (reward, ends, False)
    np.testing.assert_array_equal(seen["action_mask"], env.board == 0)
    np.testing.assert_array_equal(seen["observation"][:9], env.board == 1)
    np.testing.assert_array_equal(seen["observation"][9:], env.board == -1)


def test_a_greedy_rival_blocks() -> None:
    env = MaskedGreedy()
    for seed in range(5):
        env.reset(seed=seed)
        env.board = _board("x..", ".o.", "...")
        env.step(2)
        assert env.board[1] == -1


def test_an_illegal_move_loses_and_chance_begins_half_of_the_games() -> None:
    env, begun = Unmasked(), []
    for seed in range(100):
        env.reset(seed=seed)
        begun.append(env.board.any())
    assert 30 < sum(begun) < 70
    env.board = _board("xo.", "...", "...")
    seen, paid, terminated, _, _ = env.step(1)
    assert (seen.shape, paid, terminated) == ((18,), -1.0, True)
    assert Masked.observation_space["action_mask"].shape == (9,)  # type: ignore[index]


@pytest.mark.slow
def test_r2d2_learns_to_win_where_it_is_told_what_is_legal() -> None:
    config = Config(
        torso="mlp",
        hidden_sizes=(64,),
        lstm_size=0,
        head_size=64,
        frame_stack=1,
        burn_in=0,
        length=8,
        period=8,
        n_step=3,
        batch_size=32,
        discount=0.99,
        epsilon_base=0.3,
        learning_rate=2e-3,
        adam_epsilon=1e-5,
        target_update_period=50,
        min_replay_size=50,
        replay_size=5_000,
    )
    reached = training.train(
        make(config),
        "benchmarks.tic_tac_toe:Masked",
        num_environments=16,
        vector_steps=2_000,
        until=0.6,
        steps_per_update=2,
        seed=0,
    )
    assert reached >= 0.6  # random play has about 0
