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

import numpy as np

from agents.stac.config import ALL
from benchmarks import figures, study
from benchmarks.figures import Line, Panel
from run_folder import log_reader, settings
from run_folder.layout import RunFolder, learner_label

WINDOW = 9  # log rows of ten seconds each that one point of a run's smooth curve averages
EPISODES = 24  # that one point of a level's smooth curve averages
_SEEDS, _HEADS, _STYLES = (1, 2), (1, 2, 3), ("-", "--")
_COLOURS = {"impala": "tab:gray", "stacx": "tab:red"}
_TUNED = [f"{name}/{head}" for name in ALL for head in _HEADS]


def _read(run_dir: str, log: str, *columns: str) -> list[np.ndarray]:
    texts = ("task",) if log == "episodes" else ()
    return log_reader.read(RunFolder(pathlib.Path(run_dir)).log(log), texts=texts).defined(*columns)


def run(run_dir: str, output: str, title: str) -> None:
    """Return against steps, and against hours."""
    columns = ("actor_steps", "walltime", "episode_return")
    acted, evaluated = (_read(run_dir, log, *columns) for log in ("actor", "evaluator"))
    smooth = figures.smooth(acted[2], WINDOW)
    inner = slice(WINDOW // 2, len(acted[2]) - WINDOW // 2)
    panels = []
    for column, scale, xlabel in ((0, 1e6, "actor steps (millions)"), (1, 3600, "hours")):
        x = acted[column] / scale
        lines = [
            Line(x, acted[2], style=dict(color="#9ecae1", linewidth=0.6)),
            Line(x[inner], smooth, "while acting", style=dict(color="#2171b5")),
        ]
        if len(evaluated[2]):
            style = dict(color="#cb181d", marker="o", markersize=4)
            lines.append(Line(evaluated[column] / scale, evaluated[2], "evaluated", style=style))
        words = dict(xlabel=xlabel, ylabel="episode return")
        panels.append(Panel(lines, words, dict(loc="lower right")))
    panels[0].words["title"] = title
    figures.draw(panels, pathlib.Path(output), (9, 3.4), dpi=130, sharey=True)


def hosts(run_dir: str, output: str) -> None:
    """Return against seconds; a line for each event."""
    rows = zip(*_read(run_dir, "episodes", "walltime", "episode_return"), strict=True)
    logged = itertools.groupby(rows, key=lambda row: float(row[0]))
    seconds, returns = zip(
        *((at, np.mean([value for _, value in together])) for at, together in logged), strict=True
    )
    events: dict[float, str] = {}
    for at, event in json.loads((pathlib.Path(run_dir) / "events.json").read_text()):
        events[at] = f"{events[at]}, {event}" if at in events else event
    at_evaluations, evaluated = _read(run_dir, "evaluator", "walltime", "episode_return")
    dots = dict(color="#cb181d", marker="o", markersize=4)
    lines = [
        Line(seconds, returns, "while acting", style=dict(color="#2171b5", marker=".")),
        Line(at_evaluations, evaluated, "evaluated", style=dots),
    ]
    words = dict(xlabel="seconds", ylabel="episode return of catch")
    panel = Panel(lines, words, dict(loc="lower right"), events)
    figures.draw([panel], pathlib.Path(output), (9, 3.4), dpi=130)


def learners(run_dir: str, output: str) -> None:
    """Updates, loss and parameter lag of every learner against time."""
    titles = dict(learner_steps="updates", loss="loss", parameter_lag="parameter lag, updates")
    logs = sorted(path.stem for path in RunFolder(pathlib.Path(run_dir)).logs.glob("learner-*.csv"))
    panels = []
    for column, title in titles.items():
        found = {log: _read(run_dir, log, "walltime", column) for log in logs}
        lines = [
            Line(seconds / 60, values, log.removeprefix("learner-"))
            for log, (seconds, values) in found.items()
        ]
        yscale = "symlog" if column == "loss" else "linear"
        panels.append(Panel(lines, dict(title=title, xlabel="minutes", yscale=yscale)))
    panels[0] = panels[0]._replace(legend={})
    figures.draw(panels, pathlib.Path(output), (10, 3))


def popart(popart_dir: str, baseline_dir: str, output: str) -> None:
    """μ ± σ of every task above, its undiscounted returns below, beside a baseline's."""
    tasks = settings.load(pathlib.Path(popart_dir)).tasks
    above, below = [], []
    for task in tasks:
        steps, mu, sigma = _read(
            popart_dir, "learner-popart", "actor_steps", f"mu/{task}", f"sigma/{task}"
        )
        band, style = (mu - sigma, mu + sigma), dict(color="#d94801")
        lines = [Line(steps / 1e6, mu, band=band, style=style)]
        above.append(Panel(lines, dict(title=task)))
        lines = []
        for run_dir, label, colour in (
            (popart_dir, "popart", "#d94801"),
            (baseline_dir, "multihead_impala", "#2171b5"),
        ):
            steps, returns = _read(run_dir, "tasks", "actor_steps", f"return/{task}")
            lines.append(Line(steps / 1e6, returns, label, style=dict(color=colour)))
        below.append(Panel(lines, dict(xlabel="actor steps, all tasks (millions)")))
    above[0].words["ylabel"] = "μ, shaded μ ± σ"
    below[0].words["ylabel"] = "return, last 100 episodes"
    below[0] = below[0]._replace(legend={})
    size, columns = (3.1 * len(tasks), 5), len(tasks)
    figures.draw(above + below, pathlib.Path(output), size, columns=columns, dpi=120, sharex=True)


def dmlab(level_dir: str, other_level_dir: str, suite_dir: str, output: str) -> None:
    """Every episode's return and a moving mean; the suite's human-normalised means."""
    panels = []
    for run_dir in (level_dir, other_level_dir):
        steps, returns = _read(run_dir, "episodes", "actor_steps", "episode_return")
        mean = figures.smooth(returns, EPISODES)
        dots = dict(color="#9ecae1", marker=".", markersize=3, linestyle="")
        lines = [
            Line(steps / 1e3, returns, "episode", style=dots),
            Line(
                steps[EPISODES - 1 :] / 1e3,
                mean,
                f"mean of {EPISODES}",
                style=dict(color="#2171b5"),
            ),
        ]
        played = settings.load(pathlib.Path(run_dir))
        title = f"{played.agent}, {played.env.removeprefix('dmlab:')}"
        panels.append(Panel(lines, dict(title=title, ylabel="episode return"), dict(fontsize=8)))
    columns = ("actor_steps", "mean_normalised", "normalised_tasks")
    steps, mean, normalised = _read(suite_dir, "tasks", *columns)
    played = settings.load(pathlib.Path(suite_dir))
    everywhere = normalised == len(played.tasks)  # before, the mean is of whatever ended first
    line = Line(steps[everywhere] / 1e3, 100 * mean[everywhere], style=dict(color="#d94801"))
    title, ylabel = f"{played.agent}, {len(played.tasks)} levels", "mean human-normalised return, %"
    panels.append(Panel([line], dict(title=title, ylabel=ylabel)))
    xlabel = dict(xlabel="actor steps (thousands)")
    panels = [panel._replace(words={**panel.words, **xlabel}) for panel in panels]
    figures.draw(panels, pathlib.Path(output), (11, 3.2), dpi=120)


def stac_pong(runs: str, output: str, data: str) -> None:
    """Returns against time and steps, then each metaparameter by head; the data is written too."""
    found = {
        (agent, seed): by_minute(f"{runs}/{agent}-{seed}", agent)
        for seed in _SEEDS
        for agent in _COLOURS
    }
    with open(data, "w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["agent", "seed", "minute", "actor_steps", "episode_return", *_TUNED])
        for (agent, seed), columns in found.items():
            for minute, (steps, returned, *tuned) in enumerate(columns.T):
                told = [f"{value:.5f}" if agent == "stacx" else "" for value in tuned]
                writer.writerow([agent, seed, minute, f"{steps:.0f}", f"{returned:.2f}", *told])
    draw_stac_pong(found, pathlib.Path(output))
    for (agent, seed), columns in found.items():
        last = np.nanmean(columns[1, -6:-1])
        print(f"{agent}, seed {seed}: {columns[0, -1]:,.0f} steps, {last:.2f} in the last minutes")


def by_minute(run_dir: str, agent: str) -> np.ndarray:
    """Steps, returns and self-tuned values of a run, `[2 + tuned, minutes]`, NaN where none is."""
    walltime, *logged = _read(run_dir, "episodes", "walltime", "actor_steps", "episode_return")
    minutes = int(walltime[-1] // 60) + 1
    found = [study.mean_by_minute(walltime, values, minutes) for values in logged]
    if agent == "impala":
        return np.stack([*found, *np.full((len(_TUNED), minutes), np.nan)])
    for name in _TUNED:
        at, values = _read(run_dir, learner_label(agent), "walltime", name)
        found.append(study.mean_by_minute(at, values, minutes))
    return np.stack(found)


def draw_stac_pong(found: dict[tuple[str, int], np.ndarray], path: pathlib.Path) -> None:
    """Draws what `by_minute` found of each agent and seed."""
    by_time, by_steps = [], []
    tuned: dict[str, list[Line]] = {name: [] for name in ALL}
    for (agent, seed), (steps, returns, *of_heads) in found.items():
        minutes, linestyle = np.arange(len(steps)), _STYLES[seed - 1]
        style = dict(color=_COLOURS[agent], linestyle=linestyle)
        by_time.append(Line(minutes, returns, f"{agent}, seed {seed}", style=style))
        by_steps.append(Line(steps / 1e6, returns, style=style))
        for label, values in zip(_TUNED, of_heads, strict=True):
            name, _, head = label.partition("/")
            style = dict(color=f"C{int(head) - 1}", linestyle=linestyle)
            shown = f"head {head}" if seed == _SEEDS[0] and agent == "stacx" else None
            tuned[name].append(Line(minutes, values, shown, style=style))
    panels = [
        Panel(by_time, dict(title="return", xlabel="minutes"), {}),
        Panel(by_steps, dict(title="return", xlabel="actor steps (millions)")),
        *(
            Panel(lines, dict(title=f"σ(η) of {name}", xlabel="minutes"), {} if i == 0 else None)
            for i, (name, lines) in enumerate(tuned.items())
        ),
    ]
    figures.draw(panels, path, (13, 6), columns=4)


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
