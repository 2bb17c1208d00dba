"""Draws how hosts learned and what befell them: python -m docs.plot_hosts RUN_DIR OUTPUT.png"""

import csv
import itertools
import json
import pathlib

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np

from docs import arguments
from docs.plot_run import read


def acted(episodes: pathlib.Path) -> tuple[list[float], list[float]]:
    """Seconds at which episodes were logged, and the mean return of those logged then."""
    with episodes.open() as file:
        rows = [(float(r["walltime"]), float(r["episode_return"])) for r in csv.DictReader(file)]
    logged = itertools.groupby(rows, key=lambda row: row[0])
    means = [(seconds, np.mean([value for _, value in of])) for seconds, of in logged]
    return [seconds for seconds, _ in means], [float(mean) for _, mean in means]


def events_by_time(events: pathlib.Path) -> dict[float, list[str]]:
    """What befell the hosts, by seconds of the run."""
    found: dict[float, list[str]] = {}
    for seconds, event in json.loads(events.read_text()):
        found.setdefault(seconds, []).append(event)
    return found


def draw(run_dir: pathlib.Path, output: pathlib.Path) -> None:
    """Return against seconds; a line for each event."""
    figure, axis = plt.subplots(figsize=(9, 3.4), constrained_layout=True)
    seconds, returns = acted(run_dir / "logs" / "episodes.csv")
    axis.plot(seconds, returns, ".-", color="#2171b5", label="while acting")
    measured = read(run_dir / "logs" / "evaluator.csv", "walltime", "episode_return")
    axis.plot(*measured, "o-", color="#cb181d", ms=4, label="evaluated")
    for moment, events in events_by_time(run_dir / "events.json").items():
        axis.axvline(moment, color="#636363", linewidth=0.8, linestyle=":")
        axis.annotate(
            ", ".join(events),
            (moment, 1.0),
            xytext=(3, 0),
            textcoords="offset points",
            rotation=90,
            va="top",
            fontsize=8,
            color="#636363",
        )
    axis.set_xlabel("seconds")
    axis.set_ylabel("episode return of catch")
    axis.grid(alpha=0.3)
    axis.legend(loc="lower right", frameon=False)
    figure.savefig(output, dpi=130)


if __name__ == "__main__":
    run_dir, output = arguments.positional(__doc__, "run_dir", "output")
    draw(pathlib.Path(run_dir), pathlib.Path(output))
