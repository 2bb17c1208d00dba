"""Draws runs for docs/: python -m benchmarks.plot run RUN_DIR OUTPUT.png TITLE

    hosts RUN_DIR OUTPUT.png                        how hosts learned and what befell them
    learners RUN_DIR OUTPUT.png                     learners that shared a run
    popart POPART_DIR BASELINE_DIR OUTPUT.png       statistics and returns by task (Figure 3)
    dmlab LEVEL_DIR LEVEL_DIR SUITE_DIR OUTPUT.png  DeepMind Lab: two levels and a suite
    stac_pong RUNS OUTPUT.png DATA.csv              an hour of Pong: STACX beside IMPALA (Figure 5)

RUNS holds the run folders impala-1, stacx-1, impala-2 and stacx-2, by agent and seed.
"""

import csv
import inspect
import itertools
import json
import pathlib
from collections.abc import Callable
from typing import Any

import numpy as np

from agents.stac.config import ALL
from benchmarks import figures, study
from benchmarks.figures import Line, Panel
from run_folder import log_reader, settings
from run_folder.layout import RunFolder, learner_label

WINDOW = 9  # log rows of ten seconds each that one point of a run's smooth curve averages
EPISODES = 24  # that one point of a level's smooth curve averages
RETURN = "episode_return"
_RED, _ORANGE, _BLUE, _PALE = "#cb181d", "#d94801", "#2171b5", "#9ecae1"
_SEEDS, _HEADS, _STYLES = (1, 2), (1, 2, 3), ("-", "--")
_COLOURS = {"impala": "tab:gray", "stacx": "tab:red"}
_TUNED = [f"{name}/{head}" for name in ALL for head in _HEADS]
_DOTS: dict[str, Any] = dict(color=_RED, marker="o", markersize=4)


def _read(run_dir: str, log: str, *columns: str) -> list[np.ndarray]:
    texts = ("task",) if log == "episodes" else ()
    return log_reader.read(RunFolder(pathlib.Path(run_dir)).log(log), texts=texts).defined(*columns)


def _line(
    run_dir: str,
    log: str,
    x: str,
    y: str,
    *,
    scale: float = 1e6,
    label: str | None = None,
    window: int = 1,
    **style: Any,
) -> Line:
    """One column of a log against another; each point is the mean of so many rows."""
    columns = _read(run_dir, log, x, y)
    if len(columns[0]) < window:
        return Line([], [], style=style)
    weights = np.ones(window) / window
    horizontal, vertical = (np.convolve(values, weights, mode="valid") for values in columns)
    return Line(horizontal / scale, vertical, label, style=style)


def run(run_dir: str, output: str, title: str) -> None:
    """Return against steps, and against hours."""
    panels = []
    for x, scale, xlabel in (
        ("actor_steps", 1e6, "actor steps (millions)"),
        ("walltime", 3600, "hours"),
    ):
        of: dict[str, Any] = dict(x=x, y=RETURN, scale=scale)
        lines = [
            _line(run_dir, "actor", **of, color=_PALE, linewidth=0.6),
            _line(run_dir, "actor", **of, label="while acting", window=WINDOW, color=_BLUE),
            _line(run_dir, "evaluator", **of, label="evaluated", **_DOTS),
        ]
        words = dict(xlabel=xlabel, ylabel="episode return")
        panels.append(Panel(lines, words, dict(loc="lower right")))
    panels[0].words["title"] = title
    figures.draw(panels, pathlib.Path(output), (9, 3.4), dpi=130, sharey=True)


def hosts(run_dir: str, output: str) -> None:
    """Return against seconds; a line for each event."""
    walltime, returns = _read(run_dir, "episodes", "walltime", RETURN)
    seconds, row = np.unique(walltime, return_inverse=True)  # a second's episodes share a row
    means = np.bincount(row, returns) / np.bincount(row)
    events: dict[float, str] = {}
    for at, event in json.loads((pathlib.Path(run_dir) / "events.json").read_text()):
        events[at] = f"{events[at]}, {event}" if at in events else event
    lines = [
        Line(seconds, means, "while acting", style=dict(color=_BLUE, marker=".")),
        _line(run_dir, "evaluator", "walltime", RETURN, scale=1, label="evaluated", **_DOTS),
    ]
    words = dict(xlabel="seconds", ylabel="episode return of catch")
    panel = Panel(lines, words, dict(loc="lower right"), events)
    figures.draw([panel], pathlib.Path(output), (9, 3.4), dpi=130)


def learners(run_dir: str, output: str) -> None:
    """Updates, loss and parameter lag of every learner against time."""
    titles = dict(learner_steps="updates", loss="loss", parameter_lag="parameter lag, updates")
    logs = sorted(path.stem for path in RunFolder(pathlib.Path(run_dir)).logs.glob("learner-*.csv"))
    panels: list[Panel] = []
    for column, title in titles.items():
        lines = [
            _line(run_dir, log, "walltime", column, scale=60, label=log.removeprefix("learner-"))
            for log in logs
        ]
        yscale = "symlog" if column == "loss" else "linear"
        words = dict(title=title, xlabel="minutes", yscale=yscale)
        panels.append(Panel(lines, words, None if panels else {}))
    figures.draw(panels, pathlib.Path(output), (10, 3))


def popart(popart_dir: str, baseline_dir: str, output: str) -> None:
    """μ ± σ of every task above, its undiscounted returns below, beside a baseline's."""
    tasks = settings.load(pathlib.Path(popart_dir)).tasks
    above, below = list[Panel](), list[Panel]()
    for task in tasks:
        statistics = ("actor_steps", f"mu/{task}", f"sigma/{task}")
        steps, mu, sigma = _read(popart_dir, "learner-popart", *statistics)
        line = Line(steps / 1e6, mu, band=(mu - sigma, mu + sigma), style=dict(color=_ORANGE))
        above.append(Panel([line], dict(title=task)))
        of: dict[str, Any] = dict(log="tasks", x="actor_steps", y=f"return/{task}")
        lines = [
            _line(popart_dir, **of, label="popart", color=_ORANGE),
            _line(baseline_dir, **of, label="multihead_impala", color=_BLUE),
        ]
        words = dict(xlabel="actor steps, all tasks (millions)")
        below.append(Panel(lines, words, None if below else {}))
    above[0].words["ylabel"] = "μ, shaded μ ± σ"
    below[0].words["ylabel"] = "return, last 100 episodes"
    size, columns = (3.1 * len(tasks), 5), len(tasks)
    figures.draw(above + below, pathlib.Path(output), size, columns=columns, dpi=120, sharex=True)


def dmlab(level_dir: str, other_level_dir: str, suite_dir: str, output: str) -> None:
    """Every episode's return and a moving mean; the suite's human-normalised means."""
    xlabel, panels = "actor steps (thousands)", []
    of: dict[str, Any] = dict(log="episodes", x="actor_steps", y=RETURN, scale=1e3)
    dots: dict[str, Any] = dict(color=_PALE, marker=".", markersize=3, linestyle="")
    mean: dict[str, Any] = dict(label=f"mean of {EPISODES}", window=EPISODES, color=_BLUE)
    for run_dir in (level_dir, other_level_dir):
        lines = [_line(run_dir, **of, label="episode", **dots), _line(run_dir, **of, **mean)]
        played = settings.load(pathlib.Path(run_dir))
        title = f"{played.agent}, {played.env.removeprefix('dmlab:')}"
        words = dict(title=title, xlabel=xlabel, ylabel="episode return")
        panels.append(Panel(lines, words, dict(fontsize=8)))
    columns = ("actor_steps", "mean_normalised", "normalised_tasks")
    steps, normalised, count = _read(suite_dir, "tasks", *columns)
    played = settings.load(pathlib.Path(suite_dir))
    everywhere = count == len(played.tasks)  # before, the mean is of whatever ended first
    line = Line(steps[everywhere] / 1e3, 100 * normalised[everywhere], style=dict(color=_ORANGE))
    title, ylabel = f"{played.agent}, {len(played.tasks)} levels", "mean human-normalised return, %"
    panels.append(Panel([line], dict(title=title, xlabel=xlabel, ylabel=ylabel)))
    figures.draw(panels, pathlib.Path(output), (11, 3.2), dpi=120)


def stac_pong(runs: str, output: str, data: str) -> None:
    """Returns against time and steps, then each metaparameter by head; the data is written too."""
    rows, by_time, by_steps = [], [], []
    tuned: dict[str, list[Line]] = {name: [] for name in ALL}
    for seed, agent in itertools.product(_SEEDS, _COLOURS):
        steps, returns, *of_heads = by_minute(f"{runs}/{agent}-{seed}", agent)
        minutes, linestyle = np.arange(len(steps)), _STYLES[seed - 1]
        style = dict(color=_COLOURS[agent], linestyle=linestyle)
        by_time.append(Line(minutes, returns, f"{agent}, seed {seed}", style=style))
        by_steps.append(Line(steps / 1e6, returns, style=style))
        for column, values in zip(_TUNED, of_heads, strict=False):
            name, _, head = column.partition("/")
            label = f"head {head}" if seed == _SEEDS[0] else None
            style = dict(color=f"C{int(head) - 1}", linestyle=linestyle)
            tuned[name].append(Line(minutes, values, label, style=style))
        for minute, count, returned, *numbers in zip(
            minutes, steps, returns, *of_heads, strict=True
        ):
            told = [f"{number:.5f}" for number in numbers] or [""] * len(_TUNED)
            rows.append([agent, seed, minute, f"{count:.0f}", f"{returned:.2f}", *told])
        last = np.nanmean(returns[-6:-1])
        print(f"{agent}, seed {seed}: {steps[-1]:,.0f} steps, {last:.2f} in the last minutes")
    with open(data, "w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["agent", "seed", "minute", "actor_steps", "episode_return", *_TUNED])
        writer.writerows(rows)
    panels = [
        Panel(by_time, dict(title="return", xlabel="minutes"), {}),
        Panel(by_steps, dict(title="return", xlabel="actor steps (millions)")),
    ]
    for name, lines in tuned.items():
        words = dict(title=f"σ(η) of {name}", xlabel="minutes")
        panels.append(Panel(lines, words, None if len(panels) > 2 else {}))
    figures.draw(panels, pathlib.Path(output), (13, 6), columns=4)


def by_minute(run_dir: str, agent: str) -> list[np.ndarray]:
    """Steps, returns and what was self-tuned, if anything: `[minutes]` each, NaN where none is."""
    walltime, *logged = _read(run_dir, "episodes", "walltime", "actor_steps", RETURN)
    minutes = int(walltime[-1] // 60) + 1
    found = [study.mean_by_minute(walltime, values, minutes) for values in logged]
    for name in _TUNED if agent == "stacx" else ():
        at, values = _read(run_dir, learner_label(agent), "walltime", name)
        found.append(study.mean_by_minute(at, values, minutes))
    return found


PLOTS: dict[str, Callable[..., None]] = {
    plot.__name__: plot for plot in (run, hosts, learners, popart, dmlab, stac_pong)
}

if __name__ == "__main__":
    parser = study.parser(__doc__)
    parsers = parser.add_subparsers(dest="plot", required=True, metavar="plot")
    for name, plot in PLOTS.items():
        command = parsers.add_parser(name, help=plot.__doc__, description=plot.__doc__)
        for parameter in inspect.signature(plot).parameters:
            command.add_argument(parameter)
    asked = vars(parser.parse_args())
    PLOTS[asked.pop("plot")](**asked)
