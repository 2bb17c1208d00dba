"""Draws three runs on DeepMind Lab: two on a level each, one on a suite.

python -m studies.plot_dmlab LEVEL_RUN_DIR LEVEL_RUN_DIR SUITE_RUN_DIR OUTPUT.png
"""

import pathlib

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np

from run_folder import log_reader, settings
from run_folder.layout import RunFolder
from studies import arguments

WINDOW = 24  # episodes


def draw(levels: list[pathlib.Path], suite: pathlib.Path, output: pathlib.Path) -> None:
    """Every episode's return and a moving mean; the suite's human-normalised means."""
    figure, axes = plt.subplots(1, 3, figsize=(11, 3.2), constrained_layout=True)
    for axis, run_dir in zip(axes, levels, strict=False):
        steps, returns = log_reader.read(
            RunFolder(run_dir).log("episodes"), texts=("task",)
        ).defined("actor_steps", "episode_return")
        mean = np.convolve(returns, np.ones(WINDOW) / WINDOW, mode="valid")
        axis.plot(steps / 1e3, returns, ".", color="#9ecae1", ms=3, label="episode")
        axis.plot(steps[WINDOW - 1 :] / 1e3, mean, color="#2171b5", label=f"mean of {WINDOW}")
        run = settings.load(run_dir)
        axis.set_title(f"{run.agent}, {run.env.removeprefix('dmlab:')}", fontsize=9)
        axis.set_ylabel("episode return")
        axis.legend(frameon=False, fontsize=8)
    steps, mean, played = log_reader.read(RunFolder(suite).log("tasks")).defined(
        "actor_steps", "mean_normalised", "normalised_tasks"
    )
    run = settings.load(suite)
    everywhere = played == len(run.tasks)  # before, it is the mean of whatever ended first
    axes[2].plot(steps[everywhere] / 1e3, 100 * mean[everywhere], color="#d94801")
    axes[2].set_title(f"{run.agent}, {len(run.tasks)} levels", fontsize=9)
    axes[2].set_ylabel("mean human-normalised return, %")
    for axis in axes:
        axis.set_xlabel("actor steps (thousands)")
        axis.grid(alpha=0.3)
    figure.savefig(output, dpi=120)


if __name__ == "__main__":
    names = ("level_run_dir", "other_level_run_dir", "suite_run_dir", "output")
    first, second, third, image = map(pathlib.Path, arguments.positional(__doc__, *names))
    draw([first, second], third, image)
