"""IMPALA's four off-policy corrections: Espeholt et al. 2018, Table 2 and Figure D.1, in small.

    python -m benchmarks.corrections

trains what docs/data/impala-corrections.csv does not hold yet, then draws and prints all of it.
Actors and learner take turns in one process, so a run follows from its seed.
"""

from typing import Any, NamedTuple, get_args

from agents.impala.agent import Config, make
from agents.impala.vtrace import Correction
from benchmarks import study, training
from benchmarks.study import DOCS
from benchmarks.training import Grid, Result

DATA = DOCS / "data/impala-corrections.csv"
PLOT = DOCS / "images/impala-corrections.png"
CORRECTIONS: tuple[Correction, ...] = get_args(Correction)
REPLAYS = (0.0, 0.5)
LAGS = (0, 10, 40)
LAG_TASK = "catch"
SEEDS = range(5)
UPDATES = 150

# The learning rates are some with which V-trace learned without replay, on a seed not used here.
TASKS: dict[str, dict[str, Any]] = {
    "catch": dict(training.SMALL, learning_rate=0.02),
    "memory:recall": dict(training.SMALL, learning_rate=0.01, lstm_size=32),
}


class Run(NamedTuple):
    """The settings by which one training differs from the others."""

    task: str
    correction: Correction
    replay: float  # fraction of a batch
    lag: int  # updates by which the acting parameters are older than the newest
    seed: int


_LINES = {str(name): dict(correction=name) for name in CORRECTIONS}
# Table 2, every correction with and without replay; and Figure D.1, with lags.
GRIDS = [
    *(
        Grid(
            f"{task}, replay",
            _LINES,
            {f"{replay:.0%}": dict(task=task, replay=replay, lag=0) for replay in REPLAYS},
        )
        for task in TASKS
    ),
    Grid(
        f"{LAG_TASK}, policy lag",
        _LINES,
        {str(lag): dict(task=LAG_TASK, replay=0.0, lag=lag) for lag in LAGS},
    ),
]
RUNS = training.runs(Run, GRIDS, SEEDS)


def train(run: Run) -> Result:
    """Trains and evaluates."""
    config = Config(
        **TASKS[run.task], correction=run.correction, replay_fraction=run.replay, policy_lag=run.lag
    )
    return training.train(make, config, run.task, UPDATES, run.seed)[0]


if __name__ == "__main__":
    study.positional(__doc__)
    training.tell(study.complete(DATA, RUNS, train, Result), GRIDS, PLOT)
