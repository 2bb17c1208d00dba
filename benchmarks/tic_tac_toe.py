"""Tic-tac-toe against a fixed rival, as a task that shows which moves are legal, or does not.

`benchmarks.tic_tac_toe:Masked` and its kin are names for `--env`.
"""

from collections.abc import Iterator
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

CELLS = 9
_ROWS = np.arange(CELLS).reshape(3, 3)
LINES = (*_ROWS, *_ROWS.T, np.diag(_ROWS), np.diag(_ROWS[:, ::-1]))
_OURS, _THEIRS = 1, -1


class Masked(gymnasium.Env):
    """Pays 1 for a win, -1 for a loss; chance decides who begins. Its rival plays by chance too.

    What is seen is where the agent's marks are, then where the rival's are.
    """

    action_space = spaces.Discrete(CELLS)
    observation_space: spaces.Space = spaces.Dict(
        observation=spaces.Box(0, 1, (2 * CELLS,), np.float32),
        action_mask=spaces.Box(0, 1, (CELLS,), np.int8),
    )
    is_greedy = False

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.board = np.zeros(CELLS, np.int8)
        if self.np_random.integers(2):
            self._answer()
        return self._seen(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        if self.board[action]:
            return self._seen(), -1.0, True, False, {}
        self.board[action] = _OURS
        if not _is_won(self.board) and not self.board.all():
            self._answer()
        reward = float(_is_won(self.board)) - float(_is_won(-self.board))
        return self._seen(), reward, bool(reward or self.board.all()), False, {}

    def _answer(self) -> None:
        """The rival's move: of a greedy one the third of a line, its own or else the agent's."""
        free = np.flatnonzero(self.board == 0)
        third = next(_thirds(self.board), None) if self.is_greedy else None
        self.board[self.np_random.choice(free) if third is None else third] = _THEIRS

    def _seen(self) -> Any:
        marks = np.concatenate([self.board == _OURS, self.board == _THEIRS]).astype(np.float32)
        return {"observation": marks, "action_mask": (self.board == 0).astype(np.int8)}


class MaskedGreedy(Masked):
    """Against a rival that completes its lines, and blocks the agent's."""

    is_greedy = True


class Unmasked(Masked):
    """Without a mask: an illegal move loses the game."""

    observation_space = spaces.Box(0, 1, (2 * CELLS,), np.float32)

    def _seen(self) -> Any:
        return super()._seen()["observation"]


class UnmaskedGreedy(Unmasked):
    """Against the greedy rival."""

    is_greedy = True


def _is_won(board: np.ndarray) -> bool:
    return any((board[line] == _OURS).all() for line in LINES)


def _thirds(board: np.ndarray) -> Iterator[int]:
    """The free cells that complete a line: the rival's, then the agent's."""
    for who in (_THEIRS, _OURS):
        for line in LINES:
            if board[line].sum() == 2 * who:
                yield int(line[np.argmin(np.abs(board[line]))])
