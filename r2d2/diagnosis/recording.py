"""What actors did, row by row, with every core state they held: what replay does not keep.

Replay stores one core state with an item. Some of the paper's measurements take one with each step,
so actors play once more, and their streams are cut into sequences as replay's are.
"""

from typing import NamedTuple

import numpy as np
import tree

from agents.masking import where_rows
from replay.frames import FrameStack
from replay.layout import Layout
from replay.sequences import Cuts, Cutter
from replay.structures import FIRST, LAST, NO_ACTION, Nest, NetworkInput, Step


class Played(NamedTuple):
    """T rows of N environments, and the core states that the actors held before them."""

    step: Step  # [T, N, ...]
    core_state: Nest  # [T, N, ...], resets applied
    reset: np.ndarray  # [T, N] bool: the core state was reset before this row


class Recorder:
    """Keeps all rows. An `agents.actor.Writer`."""

    def __init__(self) -> None:
        self._rows: list[tuple[Step, Nest]] = []

    def append(
        self, step: Step, *, core_state: Nest, values: dict[str, np.ndarray], learner_step: int
    ) -> None:
        """Keeps one row."""
        del values, learner_step
        self._rows.append(tree.map_structure(np.array, (step, core_state)))

    def played(self, *, resets_on_life_loss: bool) -> Played:
        """All rows so far; whether a lost life resets the core state is up to the agent."""
        step, core_state = tree.map_structure(lambda *rows: np.stack(rows), *self._rows)
        reset = step.step_type == FIRST
        if resets_on_life_loss:
            reset[1:] |= step.lives[1:] < step.lives[:-1]
        return Played(step, core_state, reset)


def cut_sequences(played: Played, layout: Layout, count: int, seed: int) -> Cuts:
    """Sequences as replay's items are cut, without those that begin with an episode.

    There every strategy is exact: an episode begins with a zero state.

    Args:
      played: what to cut.
      layout: the replay's, with the longest burn-in of all strategies.
      count: the most sequences, drawn at random from all.
      seed: of that draw.

    Returns:
      M = `count` sequences, or fewer where there are no more.

    Raises:
      ValueError: if there is none.
    """
    step_type = played.step.step_type
    num_rows, num_environments = step_type.shape
    last_rows = [np.flatnonzero(types == LAST).tolist() for types in step_type.T]
    cutter = Cutter(layout, num_environments)
    cuts = cutter.cut(num_rows - 1, range(num_environments), last_rows)
    inside = np.flatnonzero(step_type[cuts.trained, cuts.environment] != FIRST)
    if not len(inside):
        raise ValueError(
            f"All {len(cuts.trained)} sequences begin with an episode, where every strategy is "
            f"exact: an episode has another where it is longer than {layout.length} steps."
        )
    chosen = np.random.default_rng(seed).permutation(inside)[:count]
    return Cuts(*(field[chosen] for field in cuts))


def network_inputs(
    step: Step, rows: np.ndarray, environments: np.ndarray, frame_stack: int
) -> NetworkInput:
    """What the actors' network saw in M places of their streams.

    Args:
      step: `[T, N, ...]`.
      rows: `[M]`.
      environments: `[M]`.
      frame_stack: frames of one network input.
    """
    frames = FrameStack(frame_stack)
    for age in range(frame_stack - 1, -1, -1):
        at = np.maximum(rows - age, 0), environments
        observation = tree.map_structure(lambda leaf, at=at: leaf[at], step.observation)
        stack = frames.push(observation, step.step_type[at] == FIRST)
    first = step.step_type[rows, environments] == FIRST
    before = rows - 1, environments
    none = np.full_like(step.action[before], NO_ACTION)
    return NetworkInput(
        observation=stack,
        previous_action=where_rows(first, none, step.action[before]),
        previous_reward=np.where(first, np.float32(0), step.reward[before]),
    )
