"""The content of a run folder, as a report needs it."""

import dataclasses
import math
import os
import pathlib
import time
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from agents.contract import Agent
from analysis import saved_replay
from analysis.playing import files
from analysis.report.charts import COLOURS
from environments import suites
from run_folder import (
    building,
    catalogue,
    launches,
    log_reader,
    progress,
    settings,
    task_returns,
)
from run_folder.episodes import RECENT_EPISODES
from run_folder.layout import RunFolder, evaluator_label, learner_label
from run_folder.log_reader import Log

ENDED = "ended: "  # and why
EPISODES_PER_BIN = 10  # of a curve, at least on average

_SILENT_SECONDS = 60.0  # a run that goes on writes its progress every second


@dataclasses.dataclass(frozen=True)
class Run:
    """One run."""

    name: str  # short, and no other run's on the page
    settings: settings.Settings  # as its config.json records them
    launches: Sequence[launches.Launch]  # the commands that were typed
    actor: Log  # the coordinator's log, all actors together
    episodes: Log  # a row for each episode that ended in training
    tasks: Log  # the aggregates over all tasks; no rows of a run with a single task
    learners: Mapping[str, Log]  # each agent's log
    evaluators: Mapping[str, Log]  # likewise, of the evaluations that the run makes of itself
    # By `launch.evaluate`, by file name.
    evaluations: Mapping[str, Sequence[files.Row]]
    replay: Mapping[str, saved_replay.Stored]  # the items in the newest checkpoint, by table
    progress: Mapping[str, Any] | None  # the coordinator's newest; None before the first

    @property
    def has_tasks(self) -> bool:
        """Tells whether it plays several tasks, whose returns are shown human-normalised."""
        return len(self.settings.tasks) > 1

    def recent_return(self) -> float:
        """The newest mean return; of several tasks, the median normalised one. NaN of none."""
        return self.tasks.last("median_normalised") if self.has_tasks else recent(self.episodes)


class Line(NamedTuple):
    """One agent of one run: what a colour stands for."""

    run: Run
    agent: str
    label: str
    colour: int

    @property
    def paces(self) -> bool:
        """Tells whether what all agents share, such as the actors' rate, is drawn as this line."""
        return self.agent == self.run.settings.paced_by

    @property
    def made(self) -> Agent | None:
        """The agent; None of a user's own where nothing is imported."""
        if self.run.settings.entry(self.agent) is catalogue.NOT_IMPORTED:
            return None
        return building.make_agent(self.run.settings, self.agent)

    @property
    def learner(self) -> Log:
        """The agent's learner's log."""
        return self.run.learners[self.agent]

    @property
    def evaluator(self) -> Log:
        """The log of the run's own evaluations of the agent."""
        return self.run.evaluators[self.agent]

    def episodes(self, task: str) -> Log:
        """Training episodes of one task in which the agent acted.

        The settings of the run's last launch tell which actors followed it.
        """
        log, recorded = self.run.episodes, self.run.settings
        if not len(log):
            return log
        mine = log.texts["task"] == task
        if len(recorded.agents) > 1:
            followers = [crew.actors for crew in recorded.crews() if crew.agent == self.agent]
            mine &= np.isin(log["actor"], [actor for actors in followers for actor in actors])
        return log.where(mine)

    def evaluated(self, task: str) -> str:
        """The column of the evaluator's log that holds a task's return."""
        several = self.run.has_tasks
        return f"return/{suites.evaluation_task(task)}" if several else "episode_return"

    def evaluations(self) -> list[tuple[int, dict[str, float]]]:
        """The agent's evaluations by `launch.evaluate`, played as in its paper, by update.

        Each is the update that played, and the mean return of each task.
        """
        found = [
            (rows[0].learner_steps, {t: float(r.mean()) for t, r in files.returns(rows).items()})
            for rows in self.run.evaluations.values()
            if rows and rows[0].agent == self.agent and self._is_usual(rows[0])
        ]
        return sorted(found, key=lambda evaluation: evaluation[0])

    def _is_usual(self, played: files.Played) -> bool:
        field = self.run.settings.entry(self.agent).epsilon_field
        usual = getattr(self.run.settings.configs[self.agent], field) if field else None
        return played.epsilon == usual and played.memory_steps is None

    def evaluation_curve(self) -> list[float]:
        """The result of every evaluation, by update: the mean; of several tasks the median.

        Where there are two of an update, that of `launch.evaluate`, which plays more, comes later.
        """
        column = "median_normalised" if self.run.has_tasks else "episode_return"
        steps, values = self.evaluator.defined("learner_steps", column)
        found = list(zip(steps.tolist(), values.tolist(), strict=True))
        for learner_steps, returns in self.evaluations():
            if self.run.has_tasks:
                value = task_returns.aggregates(returns).get(column, math.nan)
            else:
                value = next(iter(returns.values()))
            found.append((learner_steps, value))
        found.sort(key=lambda point: point[0])
        return [value for _, value in found if not math.isnan(value)]


def load(folders: Sequence[str]) -> list[Run]:
    """Reads runs.

    Raises:
      SettingsError: a folder is named twice or holds no run, or they have more agents than can be
        told apart.
    """
    paths = [pathlib.Path(folder) for folder in folders]
    places = [path.resolve() for path in paths]  # one may be a link to another
    twice = [path for path, place in zip(paths, places, strict=True) if places.count(place) > 1]
    if twice:
        raise settings.SettingsError(f"--run_dir names {twice[0]} twice.")
    recorded = [settings.load(path) for path in paths]
    num_lines = sum(len(run.agents) for run in recorded)
    if num_lines > len(COLOURS):
        raise settings.SettingsError(
            f"--run_dir names runs of {num_lines} agents; more than {len(COLOURS)} cannot be told "
            "apart in one figure."
        )
    return [_load(*run) for run in zip(paths, _short_names(paths), recorded, strict=True)]


def _load(path: pathlib.Path, name: str, recorded: settings.Settings) -> Run:
    folder, agents = RunFolder(path), recorded.agents
    evaluators = {a: evaluator_label(a, agents) for a in agents}
    return Run(
        name=name,
        settings=dataclasses.replace(recorded, run_dir=str(path)),  # it may have been moved
        launches=launches.read(path),
        actor=log_reader.read(folder.log("actor")),
        episodes=log_reader.read(folder.log("episodes"), texts=("task",)),
        tasks=log_reader.read(folder.log("tasks")),
        learners={a: log_reader.read(folder.log(learner_label(a))) for a in agents},
        evaluators={a: log_reader.read(folder.log(evaluators[a])) for a in agents},
        evaluations=files.read_all(path),
        replay=saved_replay.stored(folder.checkpoints),
        progress=progress.read(path),
    )


def _short_names(paths: Sequence[pathlib.Path]) -> list[str]:
    """The folders' own names, or where two have the same, the paths below what all share."""
    resolved = [path.resolve() for path in paths]
    names = [path.name for path in resolved]
    if len(set(names)) == len(names):
        return names
    shared = os.path.commonpath(resolved)
    return [os.path.relpath(path, shared) for path in resolved]


def lines(runs: Sequence[Run]) -> list[Line]:
    """Every agent of every run."""
    pairs = [(run, agent) for run in runs for agent in run.settings.agents]
    if len(pairs) == len(runs):
        labels = [run.name for run in runs]
    else:
        labels = [agent if len(runs) == 1 else f"{run.name}, {agent}" for run, agent in pairs]
    return [Line(*pairs[colour], label, colour) for colour, label in enumerate(labels)]


def recent(log: Log, count: int = RECENT_EPISODES) -> float:
    """The mean return of a log's last episodes, NaN of none."""
    (returns,) = log.defined("episode_return")
    return float(np.mean(returns[-count:])) if len(returns) else math.nan


def state(folder: RunFolder, told: Mapping[str, Any] | None) -> str:
    """The state of a run: how it ended, if it did, by what its coordinator told last."""
    crashed = folder.crash.exists()
    if told is not None and told.get("reason"):  # what breaks later did not end it
        return f"{ENDED}{told['reason']}"
    if crashed or told is None:
        return "a node crashed" if crashed else "no node has reported yet"
    now = time.time()  # noqa: TID251 (files are stamped by it; it may have been set back since)
    silent = abs(now - folder.progress.stat().st_mtime)
    return "running" if silent < _SILENT_SECONDS else "broke off"
