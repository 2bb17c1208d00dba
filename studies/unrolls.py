"""Unrolls without a replay server: a study then follows from its seed, which Reverb has none of."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import tensorflow as tf
import tree

from replay.frames import FrameStack
from replay.structures import FIRST, LAST, NO_ACTION, Batch, Nest, NetworkInput, Step


class Unrolls(NamedTuple):
    """B unrolls of T rows and the observation after them, batch first."""

    observation: np.ndarray  # [B, T + 1, ...]
    step_type: np.ndarray  # [B, T + 1]
    previous_action: np.ndarray  # [B, T + 1]
    previous_reward: np.ndarray  # [B, T + 1]
    action: np.ndarray  # [B, T]
    log_probability: np.ndarray  # [B, T]
    reward: np.ndarray  # [B, T]
    continuation: np.ndarray  # [B, T]
    core_state: Nest  # [B, ...] before row 0


class Collector:
    """Cuts the streams of N environments into unrolls. Implements `agents.actor.Writer`.

    The row after an unroll is the first of the next one, and the row before it is kept for the
    previous action and reward:

        unroll 1    x[0 1 2 3]4             T = 4; x stands for what no one reads
        unroll 2            3[4 5 6 7]8

    Args:
      length: T.
    """

    def __init__(self, length: int) -> None:
        self._length = length
        self._frames = FrameStack(1)
        self._rows: list[tuple[Step, Nest]] = []

    def append(
        self, step: Step, *, core_state: Nest, values: dict[str, np.ndarray], learner_step: int
    ) -> None:
        """Takes one row of all environments."""
        del values, learner_step
        observation = self._frames.push(step.observation, step.step_type == FIRST)
        row = (step._replace(observation=observation), core_state)
        self._rows += [row] if self._rows else [row, row]

    def take(self) -> Unrolls | None:
        """The next unroll of every environment; None until it is complete."""
        if len(self._rows) < self._length + 2:
            return None
        steps = tree.map_structure(lambda *x: np.stack(x, axis=1), *(row[0] for row in self._rows))
        core_state = self._rows[1][1]
        self._rows = self._rows[-2:]
        first = steps.step_type[:, 1:] == FIRST  # [N, T + 1]
        return Unrolls(
            observation=steps.observation[:, 1:],
            step_type=steps.step_type[:, 1:],
            previous_action=np.where(first, np.int32(NO_ACTION), steps.action[:, :-1]),
            previous_reward=np.where(first, np.float32(0), steps.reward[:, :-1]),
            action=steps.action[:, 1:-1],
            log_probability=steps.log_probability[:, 1:-1],
            reward=steps.reward[:, 1:-1],
            continuation=steps.continuation[:, 1:-1],
            core_state=core_state,
        )


class UniformReplay:
    """The newest unrolls, each drawn with equal probability.

    Args:
      size: unrolls it holds at most.
      seed: of the draws.
    """

    def __init__(self, size: int, seed: int) -> None:
        self._size = size
        self._random = np.random.default_rng(seed)
        self._held: list[Unrolls] = []  # one unroll each

    def add(self, unrolls: Unrolls) -> None:
        """Takes B unrolls; the oldest leave first."""
        for i in range(len(unrolls.action)):
            self._held.append(tree.map_structure(lambda x, i=i: x[i : i + 1], unrolls))
        del self._held[: -self._size]

    def sample(self, count: int) -> list[Unrolls]:
        """So many draws, one unroll each."""
        return [self._held[i] for i in self._random.integers(len(self._held), size=count)]


def to_batch(parts: Sequence[Unrolls]) -> Batch:
    """What a learner sees of all these unrolls: time-major tensors."""
    unrolls = tree.map_structure(lambda *x: np.concatenate(x), *parts)
    rows = tree.map_structure(
        lambda x: np.swapaxes(x, 0, 1), unrolls._replace(core_state=())
    )  # [T + 1, B, ...]
    unknown = np.zeros(len(unrolls.action), np.int64)
    batch = Batch(
        inputs=NetworkInput(rows.observation, rows.previous_action, rows.previous_reward),
        reset=rows.step_type == FIRST,
        valid=np.ones(rows.step_type.shape, bool),
        life_lost=np.zeros(rows.step_type.shape, bool),
        action=rows.action,
        log_probability=rows.log_probability,
        reward=rows.reward,
        continuation=rows.continuation,
        mask=(rows.step_type[:-1] != LAST).astype(np.float32),
        core_state=unrolls.core_state,
        key=unknown,
        shard=unknown,
        probability=unknown,
        table_size=unknown,
        learner_step=unknown,
        task=unknown,
        actor=unknown,
        agent=unknown,
    )
    return tree.map_structure(tf.convert_to_tensor, batch)
