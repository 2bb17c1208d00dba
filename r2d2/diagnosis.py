"""Measurements of a trained network in R2D2's paper (Kapturowski et al. 2019, Sections 3 and 5).

*Q-value discrepancy* (Figure 1): the distance of action values from those of the true recurrent
state, where training has to find that state from a sequence out of replay. ĥ is unrolled with the
learner's parameters from zero or from the stored state. As in the paper, it is compared with the
stored state of that very step: the one that an actor held, computed by older parameters. So the
stored state is exact where an unroll begins, and drifts from there.

The actors play with the parameters of an older snapshot; the updates since then are the parameter
lag. At lag 0 the stored state is exact everywhere, and the zero state's discrepancy is the cost of
not knowing it.

*Limited memory* (Figure 5): the actions of a policy that remembers its last k inputs, compared with
those that it would choose in the same situation if it remembered all.

Replay stores one core state with an item, and the discrepancy takes one at each step: so actors
play once more, and their streams are cut into sequences as replay's are.
"""

import collections
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import tensorflow as tf
import tree

from agents.contract import Network, Policy, PolicyOutput
from r2d2.network import JointActions
from replay.frames import FrameStack
from replay.layout import Layout
from replay.sequences import Cuts, Cutter
from replay.structures import FIRST, LAST, NO_ACTION, Nest, NetworkInput, Step
from tensor_ops.elementwise import where_rows


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
    """The inputs of the actors' network in M places of their streams.

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


class Strategy(NamedTuple):
    """A way to recover the recurrent state of a sequence's first trained step (Section 3)."""

    stored_state: bool  # the unroll begins with the stored state, or else with zero
    burn_in: int  # l, steps that are unrolled before the first trained one


class Discrepancy(NamedTuple):
    """ΔQ of M sequences."""

    first: np.ndarray  # [M] at the first trained step, i = l
    last: np.ndarray  # [M] at the last one, i = l + m − 1


def q_discrepancies(
    network: Network,
    played: Played,
    sequences: Cuts,
    strategies: Sequence[Strategy],
    frame_stack: int,
) -> dict[Strategy, Discrepancy]:
    """ΔQ of M sequences, were they trained on with each strategy (Section 3).

        ΔQ_i = ‖q(ĥ_{t+i}; θ) − q(h_{t+i}; θ)‖₂ / |max_{a,j} q(ĥ_{t+j}; θ)_a|

    i is l for a sequence's first trained step and l + m − 1 for its last; j goes through all of
    them. An episode that is younger than the burn-in has only as much of it as there is.

    Args:
      network: θ, the learner's; its outputs are action values `[M, A]`.
      played: the actors' rows and h, perhaps of older parameters.
      sequences: M of them, of at least the longest burn-in.
      strategies: of recovering ĥ.
      frame_stack: frames of one network input.
    """
    unroll = _Unroll(network, played, sequences, frame_stack)
    first, last = sequences.trained, sequences.end - 1
    true_first, true_last = (unroll.step(rows, unroll.held(rows))[0] for rows in (first, last))
    age, m = last - first, np.arange(len(first))  # [M]
    found = {}
    for strategy in strategies:
        q = np.stack(list(unroll.trained(strategy)))  # [steps, M, A]
        is_trained = np.arange(len(q))[:, None] <= age  # [steps, M]
        largest = np.where(is_trained, q.max(axis=-1), -np.inf).max(axis=0)  # [M]
        found[strategy] = Discrepancy(
            first=np.linalg.norm(q[0] - true_first, axis=-1) / np.abs(largest),
            last=np.linalg.norm(q[age, m] - true_last, axis=-1) / np.abs(largest),
        )
    return found


class _Unroll:
    """A network over M sequences at once, one step after the other."""

    def __init__(self, network: Network, played: Played, sequences: Cuts, frame_stack: int) -> None:
        self._network_step = tf.function(network.step)
        self._played = played
        self._sequences = sequences
        self._frame_stack = frame_stack
        self._initial = tree.map_structure(
            np.asarray, network.initial_state(len(sequences.trained))
        )

    def held(self, rows: np.ndarray) -> Nest:
        """The states that actors held before rows `[M]`."""
        environments = self._sequences.environment
        return tree.map_structure(lambda x: x[rows, environments], self._played.core_state)

    def step(self, rows: np.ndarray, core_state: Nest) -> tuple[np.ndarray, Nest]:
        """Action values `[M, A]` of rows `[M]` and the next state, from the state before them."""
        environments = self._sequences.environment
        inputs = network_inputs(self._played.step, rows, environments, self._frame_stack)
        return tree.map_structure(np.asarray, self._network_step(inputs, core_state))

    def trained(self, strategy: Strategy) -> Iterator[np.ndarray]:
        """Action values `[M, A]` of the trained steps, as many as the longest sequence has.

        Values after the last step of a shorter sequence mean nothing.
        """
        sequences = self._sequences
        last = sequences.end - 1
        begin = np.maximum(sequences.trained - strategy.burn_in, sequences.start)
        state = self._initial
        for offset in range(-strategy.burn_in, int((last - sequences.trained).max()) + 1):
            # A sequence with less burn-in begins over and over, until it is its turn.
            rows = np.clip(sequences.trained + offset, begin, last)
            found = self.held(rows) if strategy.stored_state else self._initial
            state = where_rows(rows == begin, found, state)
            state = where_rows(
                self._played.reset[rows, sequences.environment], self._initial, state
            )
            q, state = self.step(rows, state)
            if offset >= 0:
                yield q


def make_limited_policy(limited: Network, network: Network) -> Policy:
    """Acts greedily with a limited memory, and tells how far from the unlimited policy it is.

    Of the same inputs, the unlimited one being right (Section 5): `greedy_match` is 1 where the
    two would take the same action; `q_difference` is |max_a Q_k(a) − max_a Q_∞(a)|, in the units of
    the network's outputs.

    Args:
      limited: made by `agents.limited_memory.limit_memory`.
      network: the same without a limit; their outputs are action values `[N, A]`.

    Returns:
      A policy with the core states of both networks.
    """

    joint = JointActions(network.actions)

    @tf.function(autograph=False)
    def policy(inputs: NetworkInput, core_state: Nest) -> PolicyOutput:
        state, unlimited_state = core_state
        q, state = limited.step(inputs, state)
        unlimited_q, unlimited_state = network.step(inputs, unlimited_state)
        greedy = tf.argmax(q, axis=-1, output_type=tf.int32)
        match = greedy == tf.argmax(unlimited_q, axis=-1, output_type=tf.int32)
        difference = tf.reduce_max(q, axis=-1) - tf.reduce_max(unlimited_q, axis=-1)
        return PolicyOutput(
            action=joint.action(greedy),
            log_probability=tf.zeros(tf.shape(greedy)),
            values={
                "greedy_match": tf.cast(match, tf.float32),
                "q_difference": tf.abs(difference),
            },
            core_state=(state, unlimited_state),
        )

    return policy


class Means:
    """The means of a policy's values over every environment's first episode.

    An `agents.actor.Writer`. Later episodes, which an environment plays while others still play
    their first, would be short ones.
    """

    def __init__(self) -> None:
        self._sums: dict[str, float] = collections.defaultdict(float)
        self._steps = 0
        self._ended = np.zeros((), bool)  # [N] from the first row on

    def append(
        self, step: Step, *, core_state: Nest, values: dict[str, np.ndarray], learner_step: int
    ) -> None:
        """Counts one row."""
        del core_state, learner_step
        self._ended = self._ended | (step.step_type == LAST)
        counted = ~self._ended
        for name, value in values.items():
            self._sums[name] += float(value[counted].sum())
        self._steps += int(counted.sum())

    def means(self) -> dict[str, float]:
        """By the values' names."""
        return {name: total / self._steps for name, total in self._sums.items()}
