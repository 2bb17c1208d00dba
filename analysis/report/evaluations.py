"""The evaluations that `launch.evaluate` made of a run, with intervals."""

import os
import pathlib
import shlex
from collections.abc import Sequence

import numpy as np

from analysis.playing import intervals
from analysis.playing.files import Row
from analysis.report import page
from analysis.report.page import Section
from analysis.report.run import Run
from analysis.report.tasks import percent, with_unit
from recurrent_replay import command

_HEADER = ("evaluation", "update", "task", "episodes", "mean return", "95% interval", "normalised")


def section(runs: Sequence[Run], folder: pathlib.Path) -> Section:
    """A row for each task of each evaluation, and links to the films.

    Args:
      runs: of which they are.
      folder: of the page, from which the links lead.
    """
    rows = [
        row
        for run in runs
        for name, episodes in run.evaluations.items()
        for row in _rows(name if len(runs) == 1 else f"{run.name}: {name}", episodes)
    ]
    if not rows:
        typed = f"{command('evaluate')} --run_dir={shlex.quote(str(runs[0].path))}"
        body = page.paragraph("None yet. This makes one:") + page.commands([typed])
    else:
        body = page.of_each(len(rows), "evaluated tasks", page.table(_HEADER, rows))
    return Section("Evaluations", body + _films(runs, folder))


def _films(runs: Sequence[Run], folder: pathlib.Path) -> str:
    """Links to what was filmed; nothing where there is no film."""
    found = [
        (name if len(runs) == 1 else f"{run.name}: {name}", os.path.relpath(path, folder))
        for run in runs
        for path in sorted(run.settings.folder.videos.glob("*.mp4"))
        if (name := path.stem)
    ]
    if not found:
        return ""
    return page.heading("Films") + page.of_each(len(found), "films", page.links(found))


def _rows(name: str, episodes: Sequence[Row]) -> list[list[str]]:
    played: dict[str, list[float]] = {}
    for episode in episodes:
        played.setdefault(episode.task, []).append(episode.episode_return)
    return [
        [name, f"{episodes[0].learner_steps:,}", task, *_of_task(task, np.asarray(returns))]
        for task, returns in played.items()
    ]


def _of_task(task: str, returns: np.ndarray) -> list[str]:
    mean = float(returns.mean())
    low, high = map(page.number, intervals.of_mean(returns))
    return [
        f"{len(returns):,}",
        page.number(mean),
        f"{low} to {high}" if len(returns) > 1 else page.number(None),
        with_unit(percent(task, mean)),
    ]
