"""Draws PopArt's statistics and returns per task, the paper's Figure 3 in small, beside a baseline.

python -m studies.plot_popart POPART_RUN_DIR BASELINE_RUN_DIR OUTPUT.png
"""

import json
import pathlib

import matplotlib

from run_folder import log_reader
from run_folder.layout import RunFolder

matplotlib.use("Agg")

import matplotlib.pyplot as plt

from studies import arguments


def draw(popart: pathlib.Path, baseline: pathlib.Path, output: pathlib.Path) -> None:
    """μ ± σ of every task above, its undiscounted returns below."""
    tasks = json.loads((RunFolder(popart).config).read_text())["env"].split(",")
    figure, axes = plt.subplots(
        2, len(tasks), figsize=(3.1 * len(tasks), 5), sharex=True, constrained_layout=True
    )
    for column, task in enumerate(tasks):
        top, bottom = axes[:, column]
        steps, mu, sigma = log_reader.read(RunFolder(popart).log("learner-popart")).defined(
            "actor_steps", f"mu/{task}", f"sigma/{task}"
        )
        top.fill_between(steps / 1e6, mu - sigma, mu + sigma, alpha=0.25, color="#fd8d3c")
        top.plot(steps / 1e6, mu, color="#d94801")
        top.set_title(task)
        for run, label, color in (
            (popart, "popart", "#d94801"),
            (baseline, "multihead_impala", "#2171b5"),
        ):
            steps, returns = log_reader.read(RunFolder(run).log("tasks")).defined(
                "actor_steps", f"return/{task}"
            )
            bottom.plot(steps / 1e6, returns, color=color, label=label)
        bottom.set_xlabel("actor steps, all tasks (millions)")
        for axis in (top, bottom):
            axis.grid(alpha=0.3)
    axes[0, 0].set_ylabel("μ, shaded μ ± σ")
    axes[1, 0].set_ylabel("return, last 100 episodes")
    axes[1, 0].legend(frameon=False)
    figure.savefig(output, dpi=120)


if __name__ == "__main__":
    names = ("popart_run_dir", "baseline_run_dir", "output")
    draw(*map(pathlib.Path, arguments.positional(__doc__, *names)))
