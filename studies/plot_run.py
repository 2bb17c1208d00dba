"""Draws a run's learning curve: python -m studies.plot_run RUN_DIR OUTPUT.png TITLE"""

import pathlib

import matplotlib

from run_folder import log_reader
from run_folder.layout import RunFolder

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np

from studies import arguments

WINDOW = 9  # log rows of ten seconds each that one point of the smooth curve averages


def draw(run_dir: pathlib.Path, output: pathlib.Path, title: str) -> None:
    """Return against steps, and against hours."""
    columns = ("actor_steps", "walltime", "episode_return")
    steps, seconds, returns = log_reader.read(RunFolder(run_dir).log("actor")).defined(*columns)
    smooth = np.convolve(returns, np.ones(WINDOW) / WINDOW, mode="valid")
    margin = WINDOW // 2
    inner = slice(margin, len(returns) - margin)
    measured = log_reader.read(RunFolder(run_dir).log("evaluator")).defined(*columns)

    figure, axes = plt.subplots(1, 2, figsize=(9, 3.4), sharey=True, constrained_layout=True)
    for axis, x, evaluated_x, label in (
        (axes[0], steps / 1e6, measured[0] / 1e6, "actor steps (millions)"),
        (axes[1], seconds / 3600, measured[1] / 3600, "hours"),
    ):
        axis.plot(x, returns, color="#9ecae1", linewidth=0.6)
        axis.plot(x[inner], smooth, color="#2171b5", label="while acting")
        if len(evaluated_x):
            axis.plot(evaluated_x, measured[2], "o-", color="#cb181d", ms=4, label="evaluated")
        axis.set_xlabel(label)
        axis.grid(alpha=0.3)
    axes[0].set_ylabel("episode return")
    axes[1].legend(loc="lower right", frameon=False)
    figure.suptitle(title)
    figure.savefig(output, dpi=130)


if __name__ == "__main__":
    run_dir, output, title = arguments.positional(__doc__, "run_dir", "output", "title")
    draw(pathlib.Path(run_dir), pathlib.Path(output), title)
