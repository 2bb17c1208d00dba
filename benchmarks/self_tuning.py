"""STACX beside IMPALA in small: Zahavy et al. 2020, Figures 2b and 4, and replay, its future work.

    python -m benchmarks.self_tuning

trains what docs/data/stac.csv does not hold yet, then draws and prints all of it. Actors and
learner take turns in one process, so a run follows from its seed.
"""

from typing import Any, NamedTuple

import numpy as np

from agents.stac.agent import Config, make
from agents.stac.config import ALL
from benchmarks import study, training
from benchmarks.study import DOCS
from benchmarks.training import Grid

DATA = DOCS / "data/stac.csv"
PLOT = DOCS / "images/stac_small.png"

TASK = "memory:recall"
UPDATES = 150
SEEDS = range(3)
HEADS = {"impala": 1, "stac": 1, "stacx": 3}
SUBSETS: dict[str, tuple[str, ...]] = {
    "none": (),
    "γ": ("gamma",),
    "γ λ": ("gamma", "lambda"),
    "g": ("g_v", "g_p", "g_e"),
    "γ λ g": ("gamma", "lambda", "g_v", "g_p", "g_e"),
    "all": ALL,
}

# As `benchmarks.corrections` trains IMPALA, with heads of a hidden layer. The paper's 78,125
# updates are 500 times as many as these: so Adam's steps on η are larger than its 0.001.
CONFIG: dict[str, Any] = training.SMALL | dict(
    head_hidden_sizes=(32,),
    frames_per_step=1,
    lstm_size=32,
    learning_rate=0.01,
    max_gradient_norm=40.0,
    meta_learning_rate=0.05,
)


class Run(NamedTuple):
    """The settings by which one training differs from the others."""

    agent: str
    self_tuned: str  # names with + between them
    discount: float  # of the outer loss
    baseline_cost: float  # likewise
    replay: float  # fraction of a batch
    seed: int


class Result(NamedTuple):
    """The outcome of a training; a metaparameter that is not tuned is NaN."""

    steps: int  # of the environment
    final_return: float  # mean of the episodes played after training
    mean_return: float  # mean of all episodes during training
    gamma: float  # of the head that acts
    alpha: float  # likewise
    auxiliary_gamma: float  # mean of the other heads
    auxiliary_alpha: float


def plain(agent: str, **changes: Any) -> dict[str, Any]:
    """The fields of a run with little changed, but for its seed."""
    tuned = () if agent == "impala" else ALL
    setting = dict(agent=agent, self_tuned="+".join(tuned), discount=0.99, baseline_cost=0.5)
    return setting | dict(replay=0.0) | changes


def _varied(field: str, *values: float) -> dict[str, dict[str, float]]:
    return {str(value): {field: value} for value in values}


_REPLAYS = _varied("replay", 0.0, 0.5, 0.875)
_PAIR = {agent: plain(agent) for agent in ("impala", "stacx")}
# Figure 4's, then those with replay, then Figure 2b's.
GRIDS = [
    Grid("outer discount", _PAIR, _varied("discount", 0.9, 0.99, 0.999)),
    Grid("outer baseline_cost", _PAIR, _varied("baseline_cost", 0.05, 0.5, 5.0)),
    Grid("share of replay", _PAIR, _REPLAYS),
    Grid(
        "self-tuned",
        {agent: plain(agent) for agent in ("stac", "stacx")},
        {name: dict(self_tuned="+".join(subset)) for name, subset in SUBSETS.items()},
    ),
]
RUNS = training.runs(Run, GRIDS, SEEDS)
TUNED = {
    "alpha": "α, head 1",
    "auxiliary_alpha": "α, heads 2 and 3",
    "gamma": "γ, head 1",
    "auxiliary_gamma": "γ, heads 2 and 3",
}


def train(run: Run) -> Result:
    """Trains and evaluates."""
    config = Config(
        **CONFIG,
        num_heads=HEADS[run.agent],
        self_tuned=tuple(name for name in ALL if name in run.self_tuned.split("+")),
        discount=run.discount,
        baseline_cost=run.baseline_cost,
        replay_fraction=run.replay,
    )
    result, metrics = training.train(make, config, TASK, UPDATES, run.seed)

    def mean(name: str, *heads: int) -> float:
        values = [metrics.get(f"{name}/{head}", np.nan) for head in heads]
        return float(np.mean(values)) if values else np.nan

    others = range(2, config.num_heads + 1)
    return Result(
        *result,
        gamma=mean("gamma", 1),
        alpha=mean("alpha", 1),
        auxiliary_gamma=mean("gamma", *others),
        auxiliary_alpha=mean("alpha", *others),
    )


def tuned(results: dict[Run, Result]) -> str:
    """In Markdown: the values that STACX found, by its share of replay."""
    grid = Grid("", {"stacx": plain("stacx")}, _REPLAYS)
    columns = [map(str, grid.over_seeds(results, name, "stacx")) for name in TUNED]
    rows = list(zip(_REPLAYS, *columns, strict=True))
    return study.markdown(["replay", *TUNED.values()], rows)


if __name__ == "__main__":
    study.positional(__doc__)
    found = study.complete(DATA, RUNS, train, Result)
    training.tell(found, GRIDS, PLOT)
    print(f"\n{tuned(found)}")
