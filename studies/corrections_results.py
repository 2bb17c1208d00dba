"""What `studies.corrections` found: a file of runs, intervals over their seeds, a table, a plot."""

import pathlib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, get_args

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np

from agents.impala.vtrace import Correction
from studies.intervals import Interval, interval

CORRECTIONS: tuple[Correction, ...] = get_args(Correction)


class Run(NamedTuple):
    """What tells one training from the others."""

    task: str
    correction: Correction
    replay: float  # fraction of a batch
    lag: int  # updates by which the acting parameters are older than the newest
    seed: int


class Result(NamedTuple):
    """What came of it."""

    steps: int  # of the environments
    final_return: float  # mean of the episodes played after training
    mean_return: float  # mean of all episodes during training


Results = dict[Run, Result]


def intervals(results: Results, measure: str, **setting: Any) -> dict[Correction, Interval]:
    """One field of `Result` over the seeds of one setting, by correction.

    Args:
      results: of every seed.
      measure: name of the field.
      setting: values of `Run`'s fields other than the correction and the seed.
    """
    values: dict[Correction, list[float]] = {correction: [] for correction in CORRECTIONS}
    for run, result in results.items():
        if all(getattr(run, name) == value for name, value in setting.items()):
            values[run.correction].append(getattr(result, measure))
    return {correction: interval(found) for correction, found in values.items()}


Columns = Mapping[str, Mapping[Correction, Interval]]


def table(columns: Columns) -> str:
    """In Markdown: a row for each correction, a column for each setting."""
    lines = ["| | " + " | ".join(columns) + " |", "|---" * (len(columns) + 1) + "|"]
    for correction in CORRECTIONS:
        cells = [str(column[correction]) for column in columns.values()]
        lines.append(f"| {correction} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


class Panel(NamedTuple):
    """One part of the plot."""

    title: str
    xlabel: str
    columns: Columns  # from left to right


def draw(panels: Sequence[Panel], ylabel: str, path: pathlib.Path) -> None:
    """Means and their intervals, panels side by side."""
    size = (3.2 * len(panels), 3.2)
    figure, axes = plt.subplots(1, len(panels), figsize=size, constrained_layout=True)
    for axis, panel in zip(axes, panels, strict=True):
        for i, correction in enumerate(CORRECTIONS):
            found = [column[correction] for column in panel.columns.values()]
            axis.errorbar(
                np.arange(len(found)) + 0.06 * (i - 1.5),  # or they would hide one another
                [x.mean for x in found],
                yerr=[x.margin for x in found],
                marker="o",
                markersize=4,
                capsize=2,
                label=correction,
            )
        axis.set_xticks(range(len(panel.columns)), list(panel.columns))
        axis.set(title=panel.title, xlabel=panel.xlabel)
        axis.grid(alpha=0.3)
    axes[0].set_ylabel(ylabel)
    axes[0].legend(frameon=False)
    figure.savefig(path, dpi=130)
