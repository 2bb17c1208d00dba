"""The evaluations that `launch.evaluate` made of a run, with intervals."""

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


def section(runs: Sequence[Run]) -> Section:
    """A row for each task of each evaluation."""
    rows = [
        row
        for run in runs
        for name, episodes in run.evaluations.items()
        for row in _rows(name if len(runs) == 1 else f"{run.name}: {name}", episodes)
    ]
    if not rows:
        typed = f"{command('evaluate')} --run_dir={shlex.quote(str(runs[0].path))}"
        return Section(
            "Evaluations", page.paragraph("None yet. This makes one:") + page.commands([typed])
        )
    body = page.of_each(len(rows), "evaluated tasks", page.table(_HEADER, rows))
    return Section("Evaluations", body)


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
