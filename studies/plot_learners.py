"""Draws learners that shared a run: python -m studies.plot_learners RUN_DIR OUTPUT.png"""

import pathlib

import matplotlib

from run_folder import log_reader
from run_folder.layout import RunFolder

matplotlib.use("Agg")

import matplotlib.pyplot as plt

from studies import arguments


def draw(run_dir: pathlib.Path, output: pathlib.Path) -> None:
    """Updates, loss and parameter lag of every learner against time."""
    columns = ("learner_steps", "loss", "parameter_lag")
    figure, axes = plt.subplots(1, len(columns), figsize=(10, 3), constrained_layout=True)
    for log in sorted(RunFolder(run_dir).logs.glob("learner-*.csv")):
        name = log.stem.removeprefix("learner-")
        for axis, column in zip(axes, columns, strict=True):
            seconds, values = log_reader.read(log).defined("walltime", column)
            axis.plot(seconds / 60, values, label=name)
    for axis, title in zip(axes, ("updates", "loss", "parameter lag, updates"), strict=True):
        axis.set_title(title)
        axis.set_xlabel("minutes")
        axis.grid(alpha=0.3)
    axes[1].set_yscale("symlog")
    axes[0].legend(frameon=False)
    figure.savefig(output, dpi=110)


if __name__ == "__main__":
    draw(*map(pathlib.Path, arguments.positional(__doc__, "run_dir", "output")))
