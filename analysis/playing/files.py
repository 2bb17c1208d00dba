"""A run's evaluations on disk: one CSV file each, one row for each episode.

    evaluations/r2d2-1200.csv               agent and learner step
    evaluations/r2d2-1200-2.csv             the same again: nothing is ever overwritten
    evaluations/r2d2-1200-epsilon0.05.csv   played otherwise than the agent is evaluated
    evaluations/r2d2-1200-memory8.csv

A task's rows appear together, once all of its episodes have ended: of an evaluation that is cut
short, whole tasks are there, never only the short episodes of one.

| column | |
|---|---|
| agent | as on the command line |
| learner_steps, actor_steps, walltime | of the checkpoint: updates, agent steps, seconds |
| epsilon | probability of a random action; empty for an agent that samples from its policy |
| memory_steps | inputs that the agent remembers; empty without a limit |
| seed | of environments and policy |
| task | what was played: of a level with a held-out twin, the twin |
| episode | from 0, for each task |
| episode_return | undiscounted, unclipped |
| episode_length | agent steps |
"""

import csv
import dataclasses
import itertools
import pathlib
from collections.abc import Sequence

from agents.environment_loop import Episode
from run_folder.layout import RunFolder


@dataclasses.dataclass(frozen=True)
class Played:
    """What was played, and how: all that an evaluation's numbers depend on.

    Attributes:
      agent: its name.
      learner_steps: updates made when its parameters were saved.
      actor_steps: agent steps counted then.
      walltime: seconds that the run had lasted then.
      epsilon: probability of a random action; None where actions are sampled from the policy.
      memory_steps: inputs that the agent remembers; None is no limit.
      seed: of environments and policy.
    """

    agent: str
    learner_steps: int
    actor_steps: int
    walltime: float
    epsilon: float | None
    memory_steps: int | None
    seed: int


@dataclasses.dataclass(frozen=True)
class Row(Played):
    """One episode. Attributes are the file's columns."""

    task: str
    episode: int
    episode_return: float
    episode_length: int


# In this order, which is that of the rows that `File` writes.
_COLUMNS = [field.name for field in dataclasses.fields(Row)]


class File:
    """An evaluation's file, which nobody else writes. It is made with its first rows.

    Args:
      run_dir: the run folder.
      played: what the file is to hold.
    """

    def __init__(self, run_dir: pathlib.Path, played: Played) -> None:
        self._folder = RunFolder(run_dir).evaluations
        self._played = played
        self.path: pathlib.Path | None = None

    def append(self, task: str, episodes: Sequence[Episode]) -> None:
        """Adds all episodes of one task."""
        rows: list[Sequence[object]] = [
            (*dataclasses.astuple(self._played), task, i, episode.episode_return, episode.length)
            for i, episode in enumerate(episodes)
        ]
        mode = "a"
        if self.path is None:
            self._folder.mkdir(parents=True, exist_ok=True)
            self.path = vacant(self._folder, name(self._played), ".csv")
            rows.insert(0, _COLUMNS)
            mode = "x"
        with self.path.open(mode, newline="") as file:
            csv.writer(file).writerows(rows)


def read(path: pathlib.Path) -> list[Row]:
    """The rows of a file, in the order in which they were written."""
    with path.open(newline="") as file:
        return [_parse(row) for row in csv.DictReader(file)]


def read_all(run_dir: pathlib.Path) -> dict[str, list[Row]]:
    """Every evaluation of a run: file name without `.csv` -> rows, sorted by name."""
    return {path.stem: read(path) for path in sorted(RunFolder(run_dir).evaluations.glob("*.csv"))}


def _parse(text: dict[str, str]) -> Row:
    return Row(
        agent=text["agent"],
        learner_steps=int(text["learner_steps"]),
        actor_steps=int(text["actor_steps"]),
        walltime=float(text["walltime"]),
        epsilon=float(text["epsilon"]) if text["epsilon"] else None,
        memory_steps=int(text["memory_steps"]) if text["memory_steps"] else None,
        seed=int(text["seed"]),
        task=text["task"],
        episode=int(text["episode"]),
        episode_return=float(text["episode_return"]),
        episode_length=int(text["episode_length"]),
    )


def name(played: Played) -> str:
    """What files of this are called, without a suffix."""
    return "-".join([played.agent, str(played.learner_steps), *variation(played)])


def variation(played: Played) -> list[str]:
    """In what way an agent was made to act that is not the usual one, in words for names."""
    parts = []
    if played.epsilon:
        parts.append(f"epsilon{played.epsilon:g}")
    if played.memory_steps is not None:
        parts.append(f"memory{played.memory_steps}")
    return parts


def vacant(folder: pathlib.Path, name: str, suffix: str) -> pathlib.Path:
    """A path that no file has: of this name, or of the first numbered one that is free."""
    numbers = itertools.count(2)
    path = folder / f"{name}{suffix}"
    while path.exists():
        path = folder / f"{name}-{next(numbers)}{suffix}"
    return path
