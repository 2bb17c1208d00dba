"""Draws how hosts learned and what befell them: python -m studies.plot_hosts RUN_DIR OUTPUT.png"""

import itertools
import json
import pathlib

import matplotlib

from run_folder import log_reader
from run_folder.layout import RunFolder

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np

from studies import arguments


def acted(episodes: pathlib.Path) -> tuple[list[float], list[float]]:
    """Seconds at which episodes were logged, and the mean return of those logged then."""
    rows = zip(
        *log_reader.read(episodes, texts=("task",)).defined("walltime", "episode_return"),
        strict=True,
    )
    logged = itertools.groupby(rows, key=lambda row: float(row[0]))
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
    seconds, returns = acted(RunFolder(run_dir).log("episodes"))
    axis.plot(seconds, returns, ".-", color="#2171b5", label="while acting")
    measured = log_reader.read(RunFolder(run_dir).log("evaluator")).defined(
        "walltime", "episode_return"
    )
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
