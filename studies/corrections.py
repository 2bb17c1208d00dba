"""IMPALA's four off-policy corrections: Espeholt et al. 2018, Table 2 and Figure D.1, in small.

    python -m studies.corrections

trains what docs/data/impala-corrections.csv does not hold yet, then draws and prints all of it.
Actors and learner take turns in one process, so a run follows from its seed.
"""

import dataclasses
import itertools
from typing import Any, NamedTuple

from agents.impala.agent import Config, make
from studies import arguments, records, training
from studies.corrections_results import (
    CORRECTIONS,
    Panel,
    Result,
    Results,
    Run,
    draw,
    intervals,
    table,
)

DOCS = arguments.DOCS
DATA = DOCS / "data/impala-corrections.csv"
PLOT = DOCS / "images" / "impala-corrections.png"

REPLAYS = (0.0, 0.5)
LAGS = (0, 10, 40)
LAG_TASK = "catch"
SEEDS = range(5)


class Task(NamedTuple):
    """What all corrections use on a task."""

    updates: int
    config: dict[str, Any]


# A short training: the optimizer soon forgets the mean square of 1 that it begins with.
_SMALL: dict[str, Any] = dict(
    torso="mlp",
    hidden_sizes=(64,),
    frame_stack=1,
    length=16,
    batch_size=32,
    rmsprop_decay=0.9,
    rmsprop_epsilon=1e-3,
)
# The learning rates are some with which V-trace learned without replay, on a seed not used here.
TASKS = {
    "catch": Task(150, dict(_SMALL, learning_rate=0.02)),
    "memory:recall": Task(150, dict(_SMALL, learning_rate=0.01, lstm_size=32)),
}


def runs() -> list[Run]:
    """Those of Table 2, every correction with and without replay; and Figure D.1's, with lags."""
    table_2 = itertools.product(TASKS, REPLAYS, LAGS[:1], SEEDS, CORRECTIONS)
    figure = itertools.product([LAG_TASK], REPLAYS[:1], LAGS[1:], SEEDS, CORRECTIONS)
    return [
        Run(task, correction, replay, lag, seed)
        for task, replay, lag, seed, correction in (*table_2, *figure)
    ]


def train(run: Run) -> Result:
    """Trains and evaluates. Every update has a new unroll of each environment."""
    task = TASKS[run.task]
    config = Config(
        **task.config,
        correction=run.correction,
        replay_fraction=run.replay,
        policy_lag=run.lag,
    )
    config = dataclasses.replace(config, annealing_frames=task.updates * config.frames_per_update)
    trained = training.train(make(config), run.task, task.updates, run.seed)
    return Result(trained.steps, trained.final_return, trained.mean_return)


def panels(results: Results, measure: str) -> list[Panel]:
    """Table 2, a panel for each task, and Figure D.1."""
    table_2 = [
        Panel(
            task,
            "replay",
            {
                f"{replay:.0%}": intervals(results, measure, task=task, replay=replay, lag=0)
                for replay in REPLAYS
            },
        )
        for task in TASKS
    ]
    lags = {
        str(lag): intervals(results, measure, task=LAG_TASK, replay=0.0, lag=lag) for lag in LAGS
    }
    return [*table_2, Panel(f"{LAG_TASK}, no replay", "policy lag", lags)]


def main() -> None:
    """Trains what is missing, then draws and prints everything."""
    results = records.complete(DATA, runs(), train, Result)
    draw(panels(results, "mean_return"), "mean return during training", PLOT)
    for measure in ("final_return", "mean_return"):
        found = {
            f"{panel.title}, {panel.xlabel} {name}": column
            for panel in panels(results, measure)
            for name, column in panel.columns.items()
        }
        print(f"\n{measure}\n\n{table(found)}")


if __name__ == "__main__":
    arguments.positional(__doc__)
    main()
