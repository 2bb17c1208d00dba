"""What `studies.reproduction` found: a file of runs, bootstrap intervals, tables and plots."""

import csv
import hashlib
import math
import pathlib
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes

from analysis.playing import intervals
from analysis.playing.intervals import Interval

POINTS = 20
"""Windows of equal length that a training is cut into for its learning curve."""


class Run(NamedTuple):
    """What tells one training from the others."""

    task: str
    arm: str
    seed: int


class Result(NamedTuple):
    """What came of it."""

    steps: int  # of the environments
    updates: int
    cpu_seconds: float  # that training and evaluation took, of all threads
    final_return: float  # mean of the greedy episodes played after training
    curve: tuple[float, ...]  # mean return while training, by window; nan where no episode ended


Results = Mapping[Run, Result]


def read(path: pathlib.Path) -> dict[Run, Result]:
    """The runs that a file holds; none where there is no file."""
    if not path.exists():
        return {}
    with path.open() as file:
        return dict(_parse(row) for row in csv.DictReader(file))


def _parse(row: Mapping[str, str]) -> tuple[Run, Result]:
    return Run(row["task"], row["arm"], int(row["seed"])), Result(
        steps=int(row["steps"]),
        updates=int(row["updates"]),
        cpu_seconds=float(row["cpu_seconds"]),
        final_return=float(row["final_return"]),
        curve=tuple(float(value) for value in row["curve"].split()),
    )


def append(path: pathlib.Path, run: Run, result: Result) -> None:
    """Adds one run to a file, below a header if it is new."""
    curve = " ".join(f"{value:.3f}" for value in result.curve)
    figures = (f"{result.cpu_seconds:.1f}", f"{result.final_return:.4f}", curve)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        if not file.tell():
            writer.writerow([*Run._fields, *Result._fields])
        writer.writerow([*run, result.steps, result.updates, *figures])


class Estimate(NamedTuple):
    """A mean and its 95% interval, which of one value there is none."""

    mean: float
    interval: Interval

    def __str__(self) -> str:
        ends = self.interval if math.isfinite(self.interval.low) else ()
        digits = 0 if max(map(abs, (self.mean, *ends))) >= 100 else 2
        mean, *bounds = (f"{x:,.{digits}f}".replace("-", "−") for x in (self.mean, *ends))
        return f"{mean} [{', '.join(bounds)}]" if bounds else mean


def mean(values: Sequence[float]) -> Estimate:
    """Of a mean, with the percentile bootstrap's interval.

    Of five values it is too short: it holds a normal distribution's mean 83 times in 100, not 95.
    """
    return Estimate(float(np.mean(values)), intervals.of_mean(np.asarray(values)))


def difference(values: Sequence[float], others: Sequence[float]) -> Estimate:
    """Of mean(values) − mean(others)."""
    found = intervals.of_difference(np.asarray(values), np.asarray(others))
    return Estimate(float(np.mean(values) - np.mean(others)), found)


class Returns(NamedTuple):
    """Two measures of a run. One evaluation meets a learner in a good moment or in a bad one."""

    final: float  # the evaluation's
    late: float  # while training, in its last quarter


def returns(results: Results, task: str, arm: str) -> list[Returns]:
    """Of all seeds of an arm."""
    return [
        Returns(result.final_return, float(np.mean(result.curve[-POINTS // 4 :])))
        for run, result in results.items()
        if (run.task, run.arm) == (task, arm)
    ]


class Comparison(NamedTuple):
    """One statement that the paper makes: on a task, one arm is better than another."""

    task: str
    better: str
    worse: str


def table(results: Results, arms: Mapping[str, Sequence[str]]) -> str:
    """In Markdown: a row for each arm of each task that was run.

    Args:
      results: of every seed.
      arms: by task.
    """
    lines = ["| task | arm | final return | in the last quarter | seeds |", "|---" * 5 + "|"]
    for task, names in arms.items():
        for arm in names:
            if found := returns(results, task, arm):
                final, late = map(mean, zip(*found, strict=True))
                lines.append(f"| {task} | {arm} | {final} | {late} | {len(found)} |")
    return "\n".join(lines)


def verdicts(results: Results, comparisons: Sequence[Comparison]) -> str:
    """In Markdown: the differences between arms, and whether they are those of the paper."""
    names = ("task", "the paper's direction", "final return", "", "in the last quarter", "")
    lines = [f"| {' | '.join(names)} |", "|---" * len(names) + "|"]
    for task, better, worse in comparisons:
        found, others = returns(results, task, better), returns(results, task, worse)
        if found and others:
            pairs = zip(zip(*found, strict=True), zip(*others, strict=True), strict=True)
            cells = [f"{x} | {_verdict(x)}" for x in (difference(*pair) for pair in pairs)]
            lines.append(f"| {task} | {better} > {worse} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _verdict(found: Estimate) -> str:
    if found.interval.low > 0:
        return "yes"
    return "no, the opposite" if found.interval.high < 0 else "undecided"


def cost(results: Results) -> str:
    """How many runs there are, and what they took of one core."""
    hours = sum(result.cpu_seconds for result in results.values()) / 3600
    return f"{len(results)} runs, {hours:.1f} hours of one core."


def fingerprint(results: Results, arms: Mapping[str, Sequence[str]]) -> str:
    """Of the runs that a plot is drawn from; it carries this as its `Description`."""
    shown = sorted(
        (run, result) for run, result in results.items() if run.arm in arms.get(run.task, ())
    )
    return hashlib.sha256(repr(shown).encode()).hexdigest()


def draw(results: Results, arms: Mapping[str, Sequence[str]], path: pathlib.Path) -> None:
    """Learning curves with intervals and, at their right, the final returns of all seeds.

    Args:
      results: of every seed.
      arms: by task, which has a column.
      path: of the image.
    """
    size = (5.5 * len(arms), 3.8)
    figure, axes = plt.subplots(1, 2 * len(arms), figsize=size, width_ratios=[3, 1] * len(arms))
    for (task, names), left, right in zip(arms.items(), axes[::2], axes[1::2], strict=True):
        for i, arm in enumerate(names):
            if runs := [r for run, r in results.items() if (run.task, run.arm) == (task, arm)]:
                _draw_curve(left, runs, color=f"C{i}", label=arm)
                _draw_finals(right, [r.final_return for r in runs], i)
        left.set(title=task, xlabel="environment steps", ylabel="return while training")
        if left.lines:
            left.legend(frameon=False, fontsize=7)
        right.set(title="at the end", xticks=[], xlim=(-0.7, len(names) - 0.3))
        for axis in (left, right):
            axis.grid(alpha=0.3)
    figure.tight_layout()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110, metadata={"Description": fingerprint(results, arms)})
    plt.close(figure)


def _draw_curve(axis: Axes, runs: Sequence[Result], *, color: str, label: str) -> None:
    steps = np.mean([run.steps for run in runs]) * (np.arange(POINTS) + 0.5) / POINTS
    means = [mean(values) for values in zip(*(run.curve for run in runs), strict=True)]
    lows, highs = zip(*(found.interval for found in means), strict=True)
    axis.plot(steps, [found.mean for found in means], color=color, label=label)
    axis.fill_between(steps, lows, highs, color=color, alpha=0.15, lw=0)


def _draw_finals(axis: Axes, values: Sequence[float], column: int) -> None:
    """A dash for each seed, and the mean with its interval."""
    color = f"C{column}"
    centre, (low, high) = mean(values)
    spread = [[centre - low], [high - centre]]
    axis.errorbar([column], [centre], yerr=spread, fmt="o", ms=4, capsize=3, color=color)
    axis.plot([column] * len(values), values, "_", color=color, ms=9)
