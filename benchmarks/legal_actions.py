"""IMPALA at tic-tac-toe, told which moves are legal, or not told and losing by one that is not.

    python -m benchmarks.legal_actions

trains what docs/data/legal-actions.csv does not hold yet, then draws and prints all of it. Actors
and learner take turns in one process, so a run follows from its seed.
"""

from typing import NamedTuple

from agents.impala.agent import Config, make
from benchmarks import study, training
from benchmarks.study import DOCS
from benchmarks.training import Grid, Result

DATA = DOCS / "data/legal-actions.csv"
PLOT = DOCS / "images/legal-actions.png"
UPDATES = 150
SEEDS = range(3)


class Run(NamedTuple):
    """The settings by which one training differs from the others."""

    arm: str  # Masked or Unmasked
    rival: str  # of `benchmarks.tic_tac_toe`: greedy or chance
    seed: int


GRIDS = [
    Grid(
        "tic-tac-toe against",
        {"a mask": dict(arm="Masked"), "no mask": dict(arm="Unmasked")},
        {rival: dict(rival=rival) for rival in ("chance", "greedy")},
    )
]
RUNS = training.runs(Run, GRIDS, SEEDS)


def train(run: Run) -> Result:
    """Trains and evaluates."""
    config = Config(**training.SMALL, learning_rate=0.005, discount=0.99)
    rival = "Greedy" if run.rival == "greedy" else ""
    task = f"benchmarks.tic_tac_toe:{run.arm}{rival}"
    return training.train(make, config, task, UPDATES, run.seed)[0]


if __name__ == "__main__":
    study.positional(__doc__)
    training.tell(study.complete(DATA, RUNS, train, Result), GRIDS, PLOT)
