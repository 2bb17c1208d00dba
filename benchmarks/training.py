"""Trains a V-trace agent in one process, with no replay server: a run follows from its seed.

Reverb has no seed, so the unrolls of the environments go to the learner, and to a replay of theirs,
as they are.
"""

import dataclasses
import pathlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf
import tree

from agents.actor import RecurrentActor, make_evaluator
from agents.contract import Agent, Update
from agents.environment_loop import VectorEnvironmentLoop
from benchmarks import figures, study
from benchmarks.figures import Line, Panel
from environments import suites
from environments.dm import make_environment_spec
from replay.frames import FrameStack
from replay.structures import FIRST, LAST, NO_ACTION, Batch, Nest, NetworkInput, Step

EVALUATION_EPISODES = 200
_EVALUATION_SEED = 5  # its environments' seeds begin there
_UNKNOWN = (  # without a table
    *("key", "shard", "probability", "table_size", "learner_step", "task", "actor", "agent"),
)


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

        unroll 1    x[0 1 2 3]4             T = 4; x stands for a row that no one reads
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
    """The newest unrolls, so many at most, each drawn with equal probability."""

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
    """All these unrolls as a learner sees them: time-major tensors."""
    unrolls = tree.map_structure(lambda *x: np.concatenate(x), *parts)
    rows = tree.map_structure(
        lambda x: np.swapaxes(x, 0, 1), unrolls._replace(core_state=())
    )  # [T + 1, B, ...]
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
        **dict.fromkeys(_UNKNOWN, np.zeros(len(unrolls.action), np.int64)),
    )
    return tree.map_structure(tf.convert_to_tensor, batch)


class Trained(NamedTuple):
    """The outcome of a training."""

    steps: int  # of the environments
    final_return: float  # mean of the episodes played after training
    mean_return: float  # mean of all episodes during training
    metrics: dict[str, float]  # of the last update


def train(make: Callable[[Any], Agent], config: Any, task: str, updates: int, seed: int) -> Trained:
    """Trains and evaluates. Every update has a new unroll of each environment.

    Args:
      make: of IMPALA, or of one of its kind.
      config: its Config; entropy is annealed over the whole training.
      task: name of an environment.
      updates: how many.
      seed: of parameters, policy and environments.
    """
    config = dataclasses.replace(config, annealing_frames=updates * config.frames_per_update)
    agent = make(config)
    tf.random.set_seed(seed)
    update = agent.make_update(make_environment_spec(task))
    num_environments = config.batch_size - config.num_replayed
    collector, replay = Collector(config.length), UniformReplay(config.replay_size, seed)
    actor = RecurrentActor(
        agent.make_policy(update.network, np.arange(num_environments), num_environments, seed),
        update.network.initial_state(num_environments),
        num_environments=num_environments,
        frame_stack=config.frame_stack,
        writer=collector,
    )
    environments = suites.make(task, num_environments, seed=seed)
    loop = VectorEnvironmentLoop(environments, actor, [task] * num_environments)
    steps, returns = 0, []
    for _ in range(updates):
        while (unrolls := collector.take()) is None:
            new_steps, episodes = loop.step()
            steps += new_steps
            returns += [episode.episode_return for episode in episodes]
        replay.add(unrolls)
        _, metrics = update(to_batch([unrolls, *replay.sample(config.num_replayed)]))
    return Trained(
        steps,
        _final_return(agent, update, task, seed),
        float(np.mean(returns)),
        {name: float(value) for name, value in metrics.items()},
    )


def _final_return(agent: Agent, update: Update, task: str, seed: int) -> float:
    network = getattr(update, "learned_network", update.network)  # not the one that lags
    evaluator = make_evaluator(agent, network, num_environments=EVALUATION_EPISODES, seed=seed)
    environments = suites.make(task, EVALUATION_EPISODES, seed=_EVALUATION_SEED + seed)
    loop = VectorEnvironmentLoop(environments, evaluator, [task] * EVALUATION_EPISODES)
    return float(np.mean([episode.episode_return for episode in loop.run_episodes()]))


class Grid(NamedTuple):
    """Settings that are compared: a table, and a panel of the plot."""

    title: str
    lines: Mapping[str, Mapping[str, Any]]  # values of a run's fields, but for the seed
    columns: Mapping[str, Mapping[str, Any]]  # likewise, from left to right

    def table(self, results: Mapping[Any, Any], measure: str) -> str:
        """In Markdown: means of a field of the results over seeds, with their intervals."""
        rows = [[line, *map(str, self.over_seeds(results, measure, line))] for line in self.lines]
        return study.markdown([self.title, *self.columns], rows)

    def over_seeds(
        self, results: Mapping[Any, Any], measure: str, line: str
    ) -> list[study.Interval]:
        """The intervals of one line."""
        return [
            study.over_seeds(results, measure, **{**self.lines[line], **column})
            for column in self.columns.values()
        ]


def draw(results: Mapping[Any, Any], grids: Sequence[Grid], path: pathlib.Path) -> None:
    """Mean returns during training and their intervals, grids side by side."""
    panels = []
    for grid in grids:
        ticks, lines = np.arange(len(grid.columns)), []
        for i, line in enumerate(grid.lines):
            found = grid.over_seeds(results, "mean_return", line)
            means, margins = zip(*found, strict=True)
            shifted = ticks + 0.06 * (i - (len(grid.lines) - 1) / 2)  # or they hide one another
            lines.append(Line(shifted, means, line, margin=margins))
        words = dict(title=grid.title, xticks=ticks, xticklabels=list(grid.columns))
        panels.append(Panel(lines, words, legend={}))
    panels[0].words["ylabel"] = "mean return during training"
    figures.draw(panels, path, (3.2 * len(panels), 3.2), dpi=130)


def tell(results: Mapping[Any, Any], grids: Sequence[Grid], path: pathlib.Path) -> None:
    """Draws and prints everything."""
    draw(results, grids, path)
    for measure in ("final_return", "mean_return"):
        print(f"\n{measure}\n")
        print("\n\n".join(grid.table(results, measure) for grid in grids))
