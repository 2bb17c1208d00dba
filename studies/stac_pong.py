"""An hour of Pong: STACX beside IMPALA, a core each. python -m studies.stac_pong RUNS

RUNS holds the run folders impala-1, stacx-1, impala-2 and stacx-2, by agent and seed. What is drawn
is written to docs/data/stac_pong.csv too: a row for each minute, agent and seed.
"""

import csv
import pathlib
from collections.abc import Iterator
from typing import NamedTuple

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np

from agents.stac.config import ALL
from run_folder import log_reader
from run_folder.layout import RunFolder, learner_label
from studies import arguments

DOCS = pathlib.Path(__file__).resolve().parents[1] / "docs"
DATA = DOCS / "data" / "stac_pong.csv"
PLOT = DOCS / "images" / "stac_pong.png"
AGENTS = {"impala": "tab:gray", "stacx": "tab:red"}
SEEDS = (1, 2)
HEADS = (1, 2, 3)
_TUNED = [f"{name}/{head}" for name in ALL for head in HEADS]
_LINES = ("-", "--")  # of the seeds


class Curves(NamedTuple):
    """A run, minute by minute."""

    steps: np.ndarray  # [M], of the agent
    returns: np.ndarray  # [M], mean of the episodes that ended
    tuned: dict[str, np.ndarray]  # [M] each, by name and head; none of IMPALA


def read(run_dir: pathlib.Path, agent: str) -> Curves:
    """What a run logged; NaN in a minute in which nothing was."""
    folder = RunFolder(run_dir)
    walltime, steps, returns = log_reader.read(folder.log("episodes"), texts=("task",)).defined(
        "walltime", "actor_steps", "episode_return"
    )
    minutes = int(walltime[-1] // 60) + 1
    learner = log_reader.read(folder.log(learner_label(agent)))
    tuned = {}
    for name in _TUNED if agent == "stacx" else ():
        at, values = learner.defined("walltime", name)
        tuned[name] = _by_minute(at, values, minutes)
    return Curves(
        _by_minute(walltime, steps, minutes), _by_minute(walltime, returns, minutes), tuned
    )


def _by_minute(seconds: np.ndarray, values: np.ndarray, minutes: int) -> np.ndarray:
    """Means, `[minutes]`."""
    minute = (seconds // 60).astype(int)
    count = np.bincount(minute, minlength=minutes)[:minutes]
    total = np.bincount(minute, values, minlength=minutes)[:minutes]
    return np.where(count, total / np.maximum(count, 1), np.nan)


def write(found: dict[tuple[str, int], Curves]) -> None:
    """The rows of docs/data/stac_pong.csv."""
    with DATA.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["agent", "seed", "minute", "actor_steps", "episode_return", *_TUNED])
        writer.writerows(_rows(found))


def _rows(found: dict[tuple[str, int], Curves]) -> Iterator[list[str]]:
    for (agent, seed), run in found.items():
        for minute, (steps, returned) in enumerate(zip(run.steps, run.returns, strict=True)):
            tuned = [f"{run.tuned[n][minute]:.5f}" if n in run.tuned else "" for n in _TUNED]
            yield [agent, str(seed), str(minute), f"{steps:.0f}", f"{returned:.2f}", *tuned]


def draw(found: dict[tuple[str, int], Curves]) -> None:
    """Returns against time and steps, then each metaparameter by head (Figure 5)."""
    figure, axes = plt.subplots(2, 4, figsize=(13, 6), constrained_layout=True)
    by_time, by_steps, *of_tuned = axes.flat
    for (agent, seed), run in found.items():
        minutes = np.arange(len(run.returns))
        style = dict(color=AGENTS[agent], linestyle=_LINES[seed - 1], label=f"{agent}, seed {seed}")
        by_time.plot(minutes, run.returns, **style)
        by_steps.plot(run.steps / 1e6, run.returns, **style)
        for axis, name in zip(of_tuned, ALL, strict=True):
            for head in HEADS if run.tuned else ():
                values = run.tuned[f"{name}/{head}"]
                axis.plot(minutes, values, _LINES[seed - 1], color=f"C{head - 1}", linewidth=1)
            axis.set(title=f"σ(η) of {name}", xlabel="minutes")
    by_time.set(title="return", xlabel="minutes")
    by_steps.set(title="return", xlabel="actor steps (millions)")
    by_time.legend(frameon=False)
    of_tuned[0].legend([f"head {head}" for head in HEADS], frameon=False)
    for axis in axes.flat:
        axis.grid(alpha=0.3)
    figure.savefig(PLOT, dpi=110)


if __name__ == "__main__":
    (runs,) = map(pathlib.Path, arguments.positional(__doc__, "runs"))
    curves = {(a, s): read(runs / f"{a}-{s}", a) for s in SEEDS for a in AGENTS}
    write(curves)
    draw(curves)
    for (agent, seed), run in curves.items():
        last = np.nanmean(run.returns[-6:-1])
        print(f"{agent}, seed {seed}: {run.steps[-1]:,.0f} steps, {last:.2f} in the last minutes")
