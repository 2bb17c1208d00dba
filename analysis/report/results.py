"""Sections of results: a summary, learning curves, tasks side by side, evaluations."""

import math
import os
import shlex
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure

from analysis.playing import files, intervals
from analysis.report import charts
from analysis.report.charts import Trace, binned
from analysis.report.page import MANY, Page, duration, number, percentage
from analysis.report.run import EPISODES_PER_BIN, Line, Run, recent, state
from environments import scores, suites
from recurrent_replay import command
from run_folder import best
from run_folder.episodes import RECENT_EPISODES
from run_folder.log_reader import Log

Axis = tuple[str, float, str]  # a log's column, its unit, and what the axis is called
_STEPS: Axis = ("actor_steps", 1, "actor steps")
_HOURS: Axis = ("walltime", 3_600, charts.HOURS)

Returns = Mapping[str, float]  # by task

_TOGETHER = "Median human-normalised return"


def summary(page: Page, lines: Sequence[Line]) -> None:
    """The table of the newest results, a column for each line."""
    page.section("Summary")
    columns = [_at_a_glance(line) for line in lines]
    rows = [[name, *(column[name] for column in columns)] for name in columns[0]]
    page.table(["", *(line.label for line in lines)], rows)
    if not all(line.paces for line in lines):
        page.text(
            "What the agents of a run share, the rate of its actors for one, is drawn in the "
            "colour of the agent that paces them."
        )


def _at_a_glance(line: Line) -> dict[str, str]:
    run, evaluated = line.run, line.evaluation_curve()
    kept = best.read(run.settings.folder.checkpoints, line.agent)
    return {
        "agent": line.agent,
        "environment": run.settings.env,
        "state": state(run.settings.folder, run.progress),
        "actor steps": number(run.actor.last("actor_steps")),
        "updates": number(line.learner.last("learner_steps")),
        "time, h:mm": duration(run.actor.last("walltime")),
        "training episodes": number(run.actor.last("episodes")),
        f"training return, last {RECENT_EPISODES}": _return(run, run.recent_return()),
        "evaluated return, newest": _return(run, evaluated[-1] if evaluated else math.nan),
        "evaluated return, best": _return(run, max(evaluated, default=math.nan)),
        "update kept as the best": number(kept.learner_step if kept else None),
        "environments lost": number(run.actor.last("environments_lost")),
    }


def _return(run: Run, value: float) -> str:
    """One task's return, or the median over several of human-normalised ones."""
    if math.isnan(value):
        return number(None)
    if run.has_tasks:
        return f"{percentage(100 * value)} (median)"
    share = percent(run.settings.tasks[0], value)
    return number(value) + (f" ({percentage(share)})" if math.isfinite(share) else "")


def percent(task: str, value: float) -> float:
    """A return in percent of the way from random to human play; NaN where that is unknown."""
    score = scores.human_normalised(task, value)
    return math.nan if score is None else 100 * score


def curves(page: Page, lines: Sequence[Line]) -> None:
    """Learning curves of all tasks together, where they have human scores, and of each."""
    page.section("Learning curves")
    page.text(
        "Lines are means over training episodes, in which each actor has its own exploration; the "
        "middle half of the episodes is shaded. Dots are the evaluator's means."
    )
    page.key()
    tasks = list(dict.fromkeys(task for line in lines for task in line.run.settings.tasks))
    together = [
        figure
        for axis in (_STEPS, _HOURS)
        for figure in _against(axis, lines, _normalised, _TOGETHER, reference=1.0)
    ]
    page.grid(together, pairs=True)
    axes = (_STEPS,) if len(tasks) > MANY and together else (_STEPS, _HOURS)
    each = [
        figure
        for task in tasks
        for axis in axes
        for figure in _against(axis, lines, _of(task), task)
    ]
    if not each:
        page.text("No episode has ended yet.")
    with page.folded(len(tasks), "tasks"):
        page.grid(each, pairs=True)


def _against(
    axis: Axis,
    lines: Sequence[Line],
    traces: Callable[[Line, Axis], list[Trace]],
    title: str,
    reference: float | None = None,
) -> list[Figure]:
    label = axis[2]
    drawn = [trace for line in lines for trace in traces(line, axis)]
    return charts.curves(drawn, f"{title}, by {label.split()[-1]}", label, reference=reference)


def _of(task: str) -> Callable[[Line, Axis], list[Trace]]:
    """Reads a task's training returns, and its evaluations."""

    def read(line: Line, axis: Axis) -> list[Trace]:
        run = line.run
        if task not in run.settings.tasks:
            return []
        episodes = line.episodes(task)
        if not len(run.episodes) and not run.has_tasks and line.paces:
            episodes = run.actor  # a mean every ten seconds is better than nothing
        x, y = _columns(episodes, axis, "episode_return")
        acted = binned(x, y, colour=line.colour, band=True, least=EPISODES_PER_BIN)
        evaluated = _columns(line.evaluator, axis, line.evaluated(task))
        return [acted, binned(*evaluated, colour=line.colour, style="o--")]

    return read


def _normalised(line: Line, axis: Axis) -> list[Trace]:
    column = "median_normalised"
    evaluated = binned(*_columns(line.evaluator, axis, column), colour=line.colour, style="o--")
    acted = binned(*_columns(line.run.tasks, axis, column), colour=line.colour)
    return [acted, evaluated] if line.paces else [evaluated]


def _columns(log: Log, axis: Axis, column: str) -> tuple[np.ndarray, np.ndarray]:
    x, y = log.defined(axis[0], column)
    return x / axis[1], y


def tasks(page: Page, lines: Sequence[Line]) -> None:
    """The last returns of every task: as bars, and as a table."""
    page.section("Tasks")
    source, found = returns(lines)
    named = list(dict.fromkeys(task for of_line in found for task in of_line))
    if not named:
        page.text("No episode has ended yet.")
        return
    page.text(f"Means of {source}.")
    page.key()
    first = {task: percent(task, found[0].get(task, -math.inf)) for task in named}
    human = sorted((t for t in named if not math.isnan(first[t])), key=lambda task: -first[task])
    others = [task for task in named if math.isnan(first[task])]
    shares = [{task: percent(task, of_line[task]) for task in of_line} for of_line in found]

    def groups(tasks: Sequence[str], values: Sequence[Returns]) -> list[tuple[list[float], int]]:
        return [
            ([of_line.get(task, math.nan) for task in tasks], line.colour)
            for line, of_line in zip(lines, values, strict=True)
        ]

    drawn = []
    if human:
        what = ("Human-normalised return", "% from random to human play")
        drawn.append(charts.bars(human, groups(human, shares), *what, reference=100))
    if others:
        drawn.append(charts.bars(others, groups(others, found), "Return", "mean return"))
    page.grid(drawn)
    header, columns = ["task"], [human + others]
    for line, of_line, share in zip(lines, found, shares, strict=True):
        header.append(f"{line.label}: return")
        columns.append([number(of_line.get(task)) for task in columns[0]])
        if human:
            header.append("normalised")
            columns.append([percentage(share.get(task, math.nan)) for task in columns[0]])
    with page.folded(len(named), "tasks"):
        page.table(header, zip(*columns, strict=True))


def returns(lines: Sequence[Line]) -> tuple[str, list[Returns]]:
    """The measurement to compare by, and by it each line's mean return of every task.

    It is the best one that all lines have. So no line looks better only because it was measured
    without exploration.
    """
    sources: dict[str, Callable[[Line], Returns]] = {
        "the newest launch.evaluate": _evaluated,
        "the run's own newest evaluation": _evaluated_by_run,
        f"the last {RECENT_EPISODES} training episodes": _trained,
    }
    for source, read in sources.items():
        found = [read(line) for line in lines]
        if all(found):
            return source, found
    return source, found


def _evaluated(line: Line) -> Returns:
    found = line.evaluations()
    return found[-1][1] if found else {}


def _evaluated_by_run(line: Line) -> Returns:
    tasks = line.run.settings.tasks
    return _known(
        {suites.evaluation_task(t): line.evaluator.last(line.evaluated(t)) for t in tasks}
    )


def _trained(line: Line) -> Returns:
    return _known({t: recent(line.episodes(t)) for t in line.run.settings.tasks})


def _known(returns: Returns) -> Returns:
    return {task: value for task, value in returns.items() if not math.isnan(value)}


def evaluations(page: Page, runs: Sequence[Run]) -> None:
    """The evaluations of `launch.evaluate` with intervals, a row for each task; links to films."""
    page.section("Evaluations")

    def named(run: Run, name: str) -> str:
        return name if len(runs) == 1 else f"{run.name}: {name}"

    header = ("evaluation", "update", "task", "episodes", "mean return", "95% interval")
    rows = [
        [named(run, name), f"{played[0].learner_steps:,}", task, *_measured(task, values)]
        for run in runs
        for name, played in run.evaluations.items()
        for task, values in files.returns(played).items()
    ]
    if rows:
        with page.folded(len(rows), "evaluated tasks"):
            page.table((*header, "normalised"), rows)
    else:
        page.text("None yet. This makes one:")
        page.commands([f"{command('evaluate')} --run_dir={shlex.quote(runs[0].settings.run_dir)}"])
    films = [
        (named(run, path.stem), os.path.relpath(path, page.folder))
        for run in runs
        for path in sorted(run.settings.folder.videos.glob("*.mp4"))
    ]
    if films:
        page.heading("Films")
        with page.folded(len(films), "films"):
            page.links(films)


def _measured(task: str, returns: np.ndarray) -> list[str]:
    mean = float(returns.mean())
    low, high = map(number, intervals.of_mean(returns))
    interval = f"{low} to {high}" if len(returns) > 1 else number(None)
    return [f"{len(returns):,}", number(mean), interval, percentage(percent(task, mean))]


def commands(page: Page, runs: Sequence[Run]) -> None:
    """Each run's launches, in order: the command, below its time, version, host and processor."""
    page.section("Commands")
    for run in runs:
        if len(runs) > 1:
            page.heading(run.name)
        typed = []
        for made in run.launches:
            since = f", from {made.actor_steps:,} actor steps" if made.actor_steps else ""
            commit = f", commit {made.commit}" if made.commit else ""
            ran = f"# recurrent-replay {made.version}{commit}, on {made.host}: {made.processors}"
            typed += [f"# {made.time}{since}", *([ran] if made.host else []), made.command]
        if typed:
            page.commands(typed)
        else:
            page.text("They were not recorded.")
