"""The runs at a glance, and what was typed to make them."""

import math
import time
from collections.abc import Mapping, Sequence
from typing import Any

from analysis.report import evaluated, page
from analysis.report.page import Section
from analysis.report.run import Line, Run, recent_return
from analysis.report.tasks import percent, with_unit
from run_folder.episodes import RECENT_EPISODES
from run_folder.launches import Launch
from run_folder.layout import RunFolder

ENDED = "ended: "  # and why

_SILENT_SECONDS = 60.0  # a run that goes on writes its progress every second
_SHARED = (
    "What the agents of a run share, the rate of its actors for one, is drawn in the colour of the "
    "agent that paces them."
)
_ROWS = (
    "agent",
    "environment",
    "state",
    "actor steps",
    "updates",
    "time, h:mm",
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


def state(folder: RunFolder, reported: Mapping[str, Any] | None) -> str:
    """How a run ended, if it did.

    Args:
      folder: of the run.
      reported: what its coordinator told last, which tells once a second while it lasts.
    """
    crashed = folder.crash.exists()
    if reported is not None and reported.get("reason"):  # what breaks later did not end it
        return f"{ENDED}{reported['reason']}"
    if crashed or reported is None:
        return "a node crashed" if crashed else "no node has reported yet"
    now = time.time()  # noqa: TID251 (files are stamped by it; it may have been set back since)
    silent = abs(now - folder.progress.stat().st_mtime)
    return "running" if silent < _SILENT_SECONDS else "broke off"


def _column(line: Line) -> list[str]:
    run = line.run
    measured = [value for _, value in evaluated.curve(line)]
    return [
        line.agent,
        run.settings.env,
        state(run.settings.folder, run.progress),
        page.number(run.actor.last("actor_steps")),
        page.number(line.learner.last("learner_steps")),
        page.duration(run.actor.last("walltime")),
        page.number(run.actor.last("episodes")),
        _return(run, recent_return(run)),
        _return(run, measured[-1] if measured else None),
        _return(run, max(measured, default=None)),
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
    """A command below when, from where, with what and on what it was given."""
    since = f", from {launch.actor_steps:,} actor steps" if launch.actor_steps else ""
    commit = f", commit {launch.commit}" if launch.commit else ""
    ran = f"# recurrent-replay {launch.version}{commit}, on {launch.host}: {launch.processors}"
    return [f"# {launch.time}{since}", *([ran] if launch.host else []), launch.command]
