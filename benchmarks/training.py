"""Trains a V-trace agent in one process, so that a run follows from its seed."""

import dataclasses
import itertools
import pathlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from agents.actor import make_evaluator
from agents.contract import Agent, Network
from agents.environment_loop import VectorEnvironmentLoop
from agents.single_process import SingleProcessAgent
from benchmarks import figures, study
from benchmarks.figures import Line, Panel
from environments import suites
from environments.dm import make_environment_spec

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


class Result(NamedTuple):
    """The outcome of a training."""

    steps: int  # of the environments
    final_return: float  # mean of the episodes played after training
    mean_return: float  # mean of all episodes during training


def train(
    make: Callable[[Any], Agent], config: Any, task: str, updates: int, seed: int
) -> tuple[Result, dict[str, float]]:
    """Trains and evaluates. Every update has a new unroll of each environment.

    Args:
      make: of IMPALA, or of one of its kind.
      config: its Config; entropy is annealed over the whole training.
      task: name of an environment.
      updates: how many.
      seed: of parameters, policy, environments and replay.

    Returns:
      the outcome, and the metrics of the last update.
    """
    config = dataclasses.replace(config, annealing_frames=updates * config.frames_per_update)
    made, count = make(config), config.batch_size - config.num_replayed
    environments = suites.make(task, count, seed=seed)
    spec = make_environment_spec(task)
    agent = SingleProcessAgent(made, spec, num_environments=count, seed=seed)
    returns: list[float] = []
    while agent.learner.learner_steps < updates:
        returns += [episode.episode_return for episode in agent.learn(environments, 1)]
    update = agent.learner_update
    network = getattr(update, "learned_network", update.network)  # not the one that lags
    played = final_return(made, network, task, seed)
    return Result(agent.actor_steps, played, float(np.mean(returns))), agent.metrics()


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


def panel(
    grid: Grid, results: Mapping[Any, Any], measure: str, apart: float, **style: Any
) -> Panel:
    """A field's means over seeds and their intervals: columns from left to right, a line for each.

    Lines stand so far apart, or they would hide one another.
    """
    ticks, lines = np.arange(len(grid.columns)), []
    for i, line in enumerate(grid.lines):
        means, margins = zip(*grid.over_seeds(results, measure, line), strict=True)
        shifted = ticks + apart * (i - (len(grid.lines) - 1) / 2)
        lines.append(Line(shifted, means, line, margin=margins, style=style))
    return Panel(lines, dict(title=grid.title, xticks=ticks, xticklabels=list(grid.columns)))


def draw(results: Mapping[Any, Any], grids: Sequence[Grid], path: pathlib.Path) -> None:
    """Mean returns during training and their intervals, grids side by side."""
    panels = [panel(grid, results, "mean_return", 0.06)._replace(legend={}) for grid in grids]
    panels[0].words["ylabel"] = "mean return during training"
    figures.draw(panels, path, (3.2 * len(panels), 3.2), dpi=130)


def tell(results: Mapping[Any, Any], grids: Sequence[Grid], path: pathlib.Path) -> None:
    """Draws and prints everything."""
    draw(results, grids, path)
    for measure in ("final_return", "mean_return"):
        print(f"\n{measure}\n")
        print("\n\n".join(grid.table(results, measure) for grid in grids))
