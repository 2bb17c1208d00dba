"""STACX beside IMPALA in small: Zahavy et al. 2020, Figures 2b and 4, and replay, its future work.

    python -m studies.self_tuning

trains what docs/data/stac.csv does not hold yet, then draws and prints all of it. Actors and
learner take turns in one process, so a run follows from its seed.
"""

import dataclasses
import itertools
import pathlib
from collections.abc import Sequence
from typing import Any, NamedTuple

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes

from agents.stac.agent import Config, make
from agents.stac.config import ALL
from studies import arguments, records, training
from studies.intervals import Interval, interval

DOCS = pathlib.Path(__file__).resolve().parents[1] / "docs"
DATA = DOCS / "data" / "stac.csv"
PLOT = DOCS / "images" / "stac_small.png"

TASK = "memory:recall"
UPDATES = 150
SEEDS = range(3)
HEADS = {"impala": 1, "stac": 1, "stacx": 3}
DISCOUNTS = (0.9, 0.99, 0.999)
BASELINE_COSTS = (0.05, 0.5, 5.0)
REPLAYS = (0.0, 0.5, 0.875)
SUBSETS: tuple[tuple[str, ...], ...] = (
    (),
    ("gamma",),
    ("gamma", "lambda"),
    ("g_v", "g_p", "g_e"),
    ("gamma", "lambda", "g_v", "g_p", "g_e"),
    ALL,
)

# As `studies.corrections` trains IMPALA, with heads of a hidden layer. The paper's 78,125 updates
# are 500 times as many as these: so Adam's steps on η are larger than its 0.001.
CONFIG: dict[str, Any] = dict(
    torso="mlp",
    hidden_sizes=(64,),
    head_hidden_sizes=(32,),
    frame_stack=1,
    frames_per_step=1,
    length=16,
    batch_size=32,
    lstm_size=32,
    learning_rate=0.01,
    rmsprop_decay=0.9,
    rmsprop_epsilon=1e-3,
    max_gradient_norm=40.0,
    meta_learning_rate=0.05,
)


class Run(NamedTuple):
    """What tells one training from the others."""

    agent: str
    self_tuned: str  # names with + between them
    discount: float  # of the outer loss
    baseline_cost: float  # likewise
    replay: float  # fraction of a batch
    seed: int


class Result(NamedTuple):
    """What came of it; a metaparameter that is not tuned is NaN."""

    steps: int  # of the environment
    final_return: float  # mean of the episodes played after training
    mean_return: float  # mean of all episodes during training
    gamma: float  # of the head that acts
    alpha: float  # likewise
    auxiliary_gamma: float  # mean of the other heads
    auxiliary_alpha: float


Results = dict[Run, Result]


def runs() -> list[Run]:
    """Figure 4's, then Figure 2b's, then those with replay; each once."""
    found = []
    for agent, seed in itertools.product(("impala", "stacx"), SEEDS):
        plain = _plain(agent, seed)
        found += [plain._replace(discount=value) for value in DISCOUNTS]
        found += [plain._replace(baseline_cost=value) for value in BASELINE_COSTS]
        found += [plain._replace(replay=value) for value in REPLAYS]
    for agent, subset, seed in itertools.product(("stac", "stacx"), SUBSETS, SEEDS):
        found.append(_plain(agent, seed)._replace(self_tuned="+".join(subset)))
    return list(dict.fromkeys(found))


def _plain(agent: str, seed: int) -> Run:
    """A run with nothing changed."""
    tuned = () if agent == "impala" else ALL
    return Run(agent, "+".join(tuned), discount=0.99, baseline_cost=0.5, replay=0.0, seed=seed)


def train(run: Run) -> Result:
    """Trains and evaluates. Every update has a new unroll of each environment."""
    config = Config(
        **CONFIG,
        num_heads=HEADS[run.agent],
        self_tuned=tuple(name for name in ALL if name in run.self_tuned.split("+")),
        discount=run.discount,
        baseline_cost=run.baseline_cost,
        replay_fraction=run.replay,
    )
    config = dataclasses.replace(config, annealing_frames=UPDATES * config.frames_per_update)
    trained = training.train(make(config), TASK, UPDATES, run.seed)
    tuned = trained.metrics
    others = range(2, config.num_heads + 1)

    def of_others(name: str) -> float:
        values = [tuned[f"{name}/{head}"] for head in others if f"{name}/{head}" in tuned]
        return float(np.mean(values)) if values else np.nan

    return Result(
        trained.steps,
        trained.final_return,
        trained.mean_return,
        tuned.get("gamma/1", np.nan),
        tuned.get("alpha/1", np.nan),
        of_others("gamma"),
        of_others("alpha"),
    )


def measured(results: Results, measure: str, **setting: Any) -> Interval:
    """One field of `Result` over the seeds of one setting."""
    return interval(
        [
            getattr(result, measure)
            for run, result in results.items()
            if all(getattr(run, name) == value for name, value in setting.items())
        ]
    )


def tables(results: Results, measure: str) -> list[str]:
    """In Markdown: Figure 4's values, the subsets of Figure 2b, the shares of replay."""
    plain = _plain("stacx", 0)
    found = []
    for field, values in _VARIED.items():
        rows = []
        for agent in ("impala", "stacx"):
            setting = _setting(_plain(agent, 0))
            cells = (measured(results, measure, **setting | {field: value}) for value in values)
            rows.append([agent, *map(str, cells)])
        found.append(_markdown([field, *map(str, values)], rows))
    rows = []
    for subset in SUBSETS:
        tuned = "+".join(subset)
        cells = (
            measured(results, measure, **_setting(_plain(agent, 0)) | {"self_tuned": tuned})
            for agent in ("stac", "stacx")
        )
        rows.append([", ".join(subset) or "none", *map(str, cells)])
    found.append(_markdown(["self-tuned", "stac", "stacx"], rows))
    rows = []
    for value in REPLAYS:
        setting = _setting(plain) | {"replay": value}
        names = ("alpha", "auxiliary_alpha", "gamma", "auxiliary_gamma")
        rows.append([str(value), *(str(measured(results, name, **setting)) for name in names)])
    header = ["replay", "α, head 1", "α, heads 2 and 3", "γ, head 1", "γ, heads 2 and 3"]
    return [*found, _markdown(header, rows)]


_VARIED: dict[str, Sequence[float]] = dict(
    discount=DISCOUNTS, baseline_cost=BASELINE_COSTS, replay=REPLAYS
)


def _setting(run: Run) -> dict[str, Any]:
    return {name: value for name, value in run._asdict().items() if name != "seed"}


def _markdown(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def draw(results: Results, path: pathlib.Path) -> None:
    """The mean return during training: both agents by each setting, and the subsets."""
    figure, axes = plt.subplots(1, 4, figsize=(13, 3.2), constrained_layout=True)
    for axis, (field, values) in zip(axes, _VARIED.items(), strict=False):
        for shift, agent in ((-0.04, "impala"), (0.04, "stacx")):
            setting = _setting(_plain(agent, 0))
            found = [
                measured(results, "mean_return", **setting | {field: value}) for value in values
            ]
            _errorbar(axis, np.arange(len(values)) + shift, found, agent)
        axis.set_xticks(range(len(values)), [str(value) for value in values])
        axis.set(title=f"outer {field}" if field != "replay" else "share of replay")
    for shift, agent in ((-0.04, "stac"), (0.04, "stacx")):
        setting = _setting(_plain(agent, 0))
        found = [
            measured(results, "mean_return", **setting | {"self_tuned": "+".join(subset)})
            for subset in SUBSETS
        ]
        _errorbar(axes[-1], np.arange(len(SUBSETS)) + shift, found, agent)
    names = ["none", "γ", "γ λ", "g", "γ λ g", "all"]
    axes[-1].set_xticks(range(len(SUBSETS)), names)
    axes[-1].set(title="self-tuned")
    axes[0].set_ylabel("mean return during training")
    for axis in axes:
        axis.grid(alpha=0.3)
        axis.legend(frameon=False)
    figure.savefig(path, dpi=130)


def _errorbar(axis: Axes, x: np.ndarray, found: Sequence[Interval], label: str) -> None:
    means, margins = [each.mean for each in found], [each.margin for each in found]
    axis.errorbar(x, means, yerr=margins, marker="o", markersize=4, capsize=2, label=label)


def main() -> None:
    """Trains what is missing, then draws and prints everything."""
    results = records.complete(DATA, runs(), train, Result)
    draw(results, PLOT)
    for measure in ("final_return", "mean_return"):
        print(f"\n{measure}\n")
        print("\n\n".join(tables(results, measure)[: None if measure == "mean_return" else -1]))


if __name__ == "__main__":
    arguments.positional(__doc__)
    main()
