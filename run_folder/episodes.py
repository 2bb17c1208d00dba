"""The episodes that end in training: each in a CSV file, and what every task returned lately."""

import pathlib
from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from run_folder import disk
from run_folder.layout import RunFolder

RECENT_EPISODES = 100  # of each task

Ended = tuple[int, int, float, int, int]
"""One episode: actor, task, return, length, and the steps of its report when it ended."""


class Row(NamedTuple):
    """One episode, as the log has it."""

    actor_steps: int  # of the run, when it ended
    walltime: float
    actor: int
    task: str
    episode_return: float
    episode_length: int


class Episodes:
    """Collects what ended. Not for several threads at once.

    Args:
      run_dir: the run folder.
      tasks: their names; an episode tells its own as an index.
    """

    def __init__(self, run_dir: pathlib.Path, tasks: Sequence[str]) -> None:
        self._path = RunFolder(run_dir).log("episodes")
        self._tasks = tuple(tasks)
        self._new: list[Row] = []
        self._unwritten: list[Row] = []
        self._recent = [deque[float](maxlen=RECENT_EPISODES) for _ in tasks]

    def add(
        self, ended: Sequence[Ended], steps: int, since: tuple[float, float], until: float
    ) -> None:
        """Takes the episodes of one report.

        Steps and time pass evenly from report to report, whoever makes them: so neither ever falls
        from row to row, by which a reader would know rows that were undone.

        Args:
          ended: in the order in which they ended.
          steps: of the report.
          since: actor steps and walltime of the run at the report before this one.
          until: the walltime now.
        """
        before, began = since
        for actor, task, episode_return, length, made in ended:
            walltime = began + (until - began) * made / max(steps, 1)
            row = Row(
                int(before + made), walltime, actor, self._tasks[task], episode_return, length
            )
            self._new.append(row)
            self._unwritten.append(row)
            self._recent[task].append(episode_return)

    def take_new(self) -> list[Row]:
        """The episodes since the last call."""
        taken, self._new = self._new, []
        return taken

    def recent_returns(self) -> dict[str, float]:
        """Each task's mean return over its last episodes; NaN before its first."""
        return {
            task: mean(list(recent)) for task, recent in zip(self._tasks, self._recent, strict=True)
        }

    def write(self) -> None:
        """Appends a row for each episode that was added since the last call.

        Raises:
          OSError: the file cannot be written; it is as it was, and the next call tries again.
        """
        if not self._unwritten:
            return
        self._path.parent.mkdir(parents=True, exist_ok=True)
        rows = (row._replace(walltime=round(row.walltime, 3)) for row in self._unwritten)
        text = "".join(",".join(map(str, row)) + "\n" for row in rows)
        disk.append(self._path, text, header=",".join(Row._fields) + "\n")
        self._unwritten.clear()


def mean(values: Sequence[float]) -> float:
    """The mean, NaN of nothing."""
    return float(np.mean(values)) if values else float("nan")
