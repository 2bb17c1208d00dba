"""All that a run folder tells a report."""

import dataclasses
import math
import os
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from agents.contract import Agent
from analysis.playing import files
from analysis.report import stored_priorities
from analysis.report.figures import COLOURS
from environments import suites
from run_folder import building, catalogue, launches, log_reader, progress, settings
from run_folder.layout import RunFolder, evaluator_label, learner_label
from run_folder.log_reader import Log


@dataclasses.dataclass(frozen=True)
class Run:
    """One run.

    Attributes:
      name: short, and no other run's on the page.
      settings: as its config.json records them.
      launches: what was typed.
      actor: the coordinator's log, all actors together.
      episodes: a row for each episode that ended in training.
      tasks: what all tasks together amount to; no rows of a run with a single task.
      learners: each agent's log.
      evaluators: likewise, of the evaluations that the run makes of itself.
      evaluations: those that `launch.evaluate` made of it, by file name.
      replay: what the newest checkpoint holds, by table.
      progress: the coordinator's newest; None before the first.
    """

    name: str
    settings: settings.Settings
    launches: Sequence[launches.Launch]
    actor: Log
    episodes: Log
    tasks: Log
    learners: Mapping[str, Log]
    evaluators: Mapping[str, Log]
    evaluations: Mapping[str, Sequence[files.Row]]
    replay: Mapping[str, stored_priorities.Stored]
    progress: Mapping[str, Any] | None

    @property
    def path(self) -> pathlib.Path:
        """The run folder."""
        return self.settings.path


class Line(NamedTuple):
    """One agent of one run: what a colour stands for."""

    run: Run
    agent: str
    label: str
    colour: int

    @property
    def paces(self) -> bool:
        """Whether what the run's agents share, its actors' rate for one, is drawn as this line."""
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

        Who did follows from the settings, which are those of the run's last launch.
        """
        log = self.run.episodes
        if not len(log):
            return log
        mine = log.texts["task"] == task
        if len(self.run.settings.agents) > 1:
            mine &= np.isin(log["actor"], _actors(self.run.settings, self.agent))
        return log.where(mine)

    def evaluated(self, task: str) -> str:
        """The column of the evaluator's log that holds a task's return."""
        several = len(self.run.settings.tasks) > 1
        return f"return/{suites.evaluation_task(task)}" if several else "episode_return"


def load(folders: Sequence[str]) -> list[Run]:
    """Reads runs.

    Raises:
      SettingsError: a folder is named twice or holds no run, or they have more agents than can be
        told apart.
    """
    paths = [pathlib.Path(folder) for folder in folders]
    twice = [path for path in paths if paths.count(path) > 1]
    if twice:
        raise settings.SettingsError(f"--run_dir names {twice[0]} twice.")
    recorded = [settings.load(path) for path in paths]
    num_lines = sum(len(run.agents) for run in recorded)
    if num_lines > len(COLOURS):
        raise settings.SettingsError(
            f"--run_dir names runs of {num_lines} agents; more than {len(COLOURS)} cannot be told "
            "apart in one figure."
        )
    names = short_names(paths)
    return [_load(*run) for run in zip(paths, names, recorded, strict=True)]


def lines(runs: Sequence[Run]) -> list[Line]:
    """Every agent of every run."""
    pairs = [(run, agent) for run in runs for agent in run.settings.agents]
    several = len(pairs) > len(runs)
    return [
        Line(run, agent, _label(runs, run, agent) if several else run.name, colour)
        for colour, (run, agent) in enumerate(pairs)
    ]


def short_names(paths: Sequence[pathlib.Path]) -> list[str]:
    """The folders' own names, or where two have the same, the paths below what all share."""
    names = [path.resolve().name for path in paths]
    if len(set(names)) == len(names):
        return names
    resolved = [str(path.resolve()) for path in paths]
    shared = os.path.commonpath(resolved)
    return [os.path.relpath(path, shared) for path in resolved]


def _label(runs: Sequence[Run], run: Run, agent: str) -> str:
    return agent if len(runs) == 1 else f"{run.name}, {agent}"


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
        replay=stored_priorities.read(folder.checkpoints),
        progress=progress.read(path),
    )


def _actors(recorded: settings.Settings, agent: str) -> list[int]:
    """Those that follow an agent's policy."""
    return [a for crew in recorded.crews() if crew.agent == agent for a in crew.actors]


def recent(log: Log, count: int = 100) -> float:
    """The mean return of a log's last episodes, NaN of none."""
    (returns,) = log.defined("episode_return")
    return float(np.mean(returns[-count:])) if len(returns) else math.nan


def recent_return(run: Run) -> float:
    """A task's mean return lately, of several the median human-normalised one; NaN of none."""
    several = len(run.settings.tasks) > 1
    return run.tasks.last("median_normalised") if several else recent(run.episodes)
