"""The runs at a glance, and what was typed to make them."""

import math
import time
from collections.abc import Sequence

from analysis.report import page
from analysis.report.page import Section
from analysis.report.run import Line, Run, recent
from analysis.report.tasks import percent, with_unit
from run_folder.episodes import RECENT_EPISODES
from run_folder.launches import Launch

_SILENT_SECONDS = 60.0  # a run that goes on writes its progress every second
_SHARED = (
    "What the agents of a run share, the rate of its actors for one, is drawn in the colour of the "
    "agent that paces them."
)
_ROWS = (
    "agent",
    "environment",
    "state",
    "agent steps",
    "updates",
    "hours",
    "training episodes",
    f"training return, last {RECENT_EPISODES}",
    "evaluated return, newest",
    "evaluated return, best",
    "environments lost",
)


def section(lines: Sequence[Line]) -> Section:
    """A column for each line."""
    columns = [_column(line) for line in lines]
    rows = [[name, *values] for name, *values in zip(_ROWS, *columns, strict=True)]
    body = page.table(["", *(line.label for line in lines)], rows)
    if not all(line.paces for line in lines):
        body += page.paragraph(_SHARED)
    return Section("Summary", body)


def commands(runs: Sequence[Run]) -> Section:
    """Each run's launches, in order."""
    body = ""
    for run in runs:
        typed = [line for launch in run.launches for line in _typed(launch)]
        body += page.heading(run.name) if len(runs) > 1 else ""
        body += page.commands(typed) if typed else page.paragraph("They were not recorded.")
    return Section("Commands", body)


def state(run: Run, now: float) -> str:
    """How a run ended, if it did.

    Args:
      run: of which the coordinator, while it lasts, tells once a second.
      now: unix time.
    """
    folder = run.settings.folder
    reported, crashed = run.progress, folder.crash.exists()
    if reported is not None and reported["reason"]:  # what breaks later did not end it
        return f"ended: {reported['reason']}"
    if crashed or reported is None:
        return "a node crashed" if crashed else "no node has reported yet"
    silent = now - folder.progress.stat().st_mtime
    return "running" if silent < _SILENT_SECONDS else "broke off"


def _column(line: Line) -> list[str]:
    run = line.run
    several = len(run.settings.tasks) > 1
    (evaluated,) = line.evaluator.defined("median_normalised" if several else "episode_return")
    trained = run.tasks.last("median_normalised") if several else recent(run.episodes)
    return [
        line.agent,
        run.settings.env,
        state(run, time.time()),
        page.number(run.actor.last("actor_steps")),
        page.number(line.learner.last("learner_steps")),
        page.number(run.actor.last("walltime") / 3_600, digits=3),
        page.number(run.actor.last("episodes")),
        _return(run, trained),
        _return(run, float(evaluated[-1]) if len(evaluated) else None),
        _return(run, float(evaluated.max()) if len(evaluated) else None),
        page.number(run.actor.last("environments_lost")),
    ]


def _return(run: Run, value: float | None) -> str:
    """One task's return, or the median over several of human-normalised ones."""
    if value is None or math.isnan(value):
        return page.number(None)
    tasks = run.settings.tasks
    if len(tasks) > 1:
        return f"{with_unit(100 * value)} (median)"
    share = with_unit(percent(tasks[0], value))
    return page.number(value) + (f" ({share})" if share != page.number(None) else "")


def _typed(launch: Launch) -> list[str]:
    """A command below when, and from where, it was given."""
    since = f", from {launch.actor_steps:,} agent steps" if launch.actor_steps else ""
    return [f"# {launch.time}{since}", launch.command]
