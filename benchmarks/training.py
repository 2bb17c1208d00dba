"""Trains a V-trace agent in one process, with no replay server: a run follows from its seed.

Reverb has no seed, so the unrolls of the environments go to the learner, and to a replay of theirs,
as they are.
"""

import dataclasses
import itertools
import pathlib
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf
import tree

from agents.actor import RecurrentActor, make_evaluator
from agents.contract import Agent, Network
from agents.environment_loop import VectorEnvironmentLoop
from benchmarks import figures, study
from benchmarks.figures import Line, Panel
from environments import suites
from environments.dm import make_environment_spec
from replay.frames import FrameStack
from replay.structures import FIRST, LAST, NO_ACTION, Batch, Nest, NetworkInput, Step

EVALUATION_EPISODES = 200
_EVALUATION_SEED = 5  # added to a run's: no run trains on an environment that it is evaluated on
# The settings of short trainings of small networks. The optimizer soon forgets the mean square of 1
# that it begins with.
SMALL: dict[str, Any] = dict(
    torso="mlp",
    hidden_sizes=(64,),
    frame_stack=1,
    length=16,
    batch_size=32,
    rmsprop_decay=0.9,
    rmsprop_epsilon=1e-3,
)
_OF_ITEMS = ("key", "shard", "probability", "table_size", "learner_step", "task", "actor", "agent")


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

    def take(self) -> Batch | None:
        """The next unroll of every environment, batch-major `[N, T, ...]`; None until complete."""
        if len(self._rows) < self._length + 2:
            return None
        steps = tree.map_structure(lambda *x: np.stack(x, axis=1), *(row[0] for row in self._rows))
        core_state = self._rows[1][1]
        self._rows = self._rows[-2:]
        first = steps.step_type[:, 1:] == FIRST  # [N, T + 1]
        return Batch(
            inputs=NetworkInput(
                steps.observation[:, 1:],
                np.where(first, np.int32(NO_ACTION), steps.action[:, :-1]),
                np.where(first, np.float32(0), steps.reward[:, :-1]),
            ),
            reset=first,
            valid=np.ones_like(first),
            life_lost=np.zeros_like(first),
            action=steps.action[:, 1:-1],
            log_probability=steps.log_probability[:, 1:-1],
            reward=steps.reward[:, 1:-1],
            continuation=steps.continuation[:, 1:-1],
            mask=(steps.step_type[:, 1:-1] != LAST).astype(np.float32),
            core_state=core_state,
            **dict.fromkeys(_OF_ITEMS, np.zeros(len(first), np.int64)),  # there is no table
        )


def single_unrolls(batch: Batch) -> list[Batch]:
    """The unrolls of a batch-major batch, a batch of one each."""
    return [
        tree.map_structure(lambda x, i=i: x[i : i + 1], batch) for i in range(len(batch.action))
    ]


def to_batch(parts: Sequence[Batch]) -> Batch:
    """Several batch-major batches as a learner sees them: one of time-major tensors."""
    joined = tree.map_structure(lambda *x: np.concatenate(x), *parts)
    kept = {name: getattr(joined, name) for name in ("core_state", *_OF_ITEMS)}  # [B, ...]
    rows = joined._replace(**dict.fromkeys(kept, ()))
    batch = tree.map_structure(lambda x: np.swapaxes(x, 0, 1), rows)._replace(**kept)
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
      seed: of parameters, policy, environments and replay.
    """
    config = dataclasses.replace(config, annealing_frames=updates * config.frames_per_update)
    agent = make(config)
    tf.random.set_seed(seed)
    update = agent.make_update(make_environment_spec(task))
    num_environments = config.batch_size - config.num_replayed
    collector = Collector(config.length)
    replay: deque[Batch] = deque(maxlen=config.replay_size)
    chance = np.random.default_rng(seed)
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
        replay.extend(single_unrolls(unrolls))
        drawn = chance.integers(len(replay), size=config.num_replayed)
        _, metrics = update(to_batch([unrolls, *(replay[i] for i in drawn)]))
    network = getattr(update, "learned_network", update.network)  # not the one that lags
    return Trained(
        steps,
        final_return(agent, network, task, seed),
        float(np.mean(returns)),
        {name: float(value) for name, value in metrics.items()},
    )


def final_return(agent: Agent, network: Network, task: str, seed: int) -> float:
    """The mean return of `EVALUATION_EPISODES` that an agent plays after training."""
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


def runs(kind: Callable[..., Any], grids: Sequence[Grid], seeds: Iterable[int]) -> list[Any]:
    """The runs of all grids, each once."""
    found = [
        kind(**{**line, **column}, seed=seed)
        for grid in grids
        for line, seed, column in itertools.product(
            grid.lines.values(), seeds, grid.columns.values()
        )
    ]
    return list(dict.fromkeys(found))


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
