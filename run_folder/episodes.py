"""The episodes that end in training: each in a CSV file, and what every task returned lately."""

import pathlib
from collections import deque
from collections.abc import Sequence

import numpy as np

from run_folder.layout import RunFolder

RECENT_EPISODES = 100  # of each task

Ended = tuple[int, int, float, int]  # one episode: actor, task, return, length


class Episodes:
    """Collects what ended. Not for several threads at once.

    Args:
      run_dir: the run folder.
      tasks: their names; an episode tells its own as an index.
    """

    def __init__(self, run_dir: pathlib.Path, tasks: Sequence[str]) -> None:
        self._path = RunFolder(run_dir).log("episodes")
        self._tasks = tuple(tasks)
        self._new: list[Ended] = []
        self._recent = [deque[float](maxlen=RECENT_EPISODES) for _ in tasks]

    def add(self, ended: Sequence[Ended]) -> None:
        """Takes episodes, in the order in which they ended."""
        self._new.extend(ended)
        for _, task, episode_return, _ in ended:
            self._recent[task].append(episode_return)

    def take_new(self) -> list[Ended]:
        """Those since the last call."""
        taken, self._new = self._new, []
        return taken

    def recent_returns(self) -> dict[str, float]:
        """Each task's mean return over its last episodes; NaN before its first."""
        return {
            task: mean(list(recent)) for task, recent in zip(self._tasks, self._recent, strict=True)
        }

    def write(self, ended: Sequence[Ended], actor_steps: float, walltime: float) -> None:
        """Appends a row for each episode, with the counts of the moment."""
        new = not self._path.exists()
        with self._path.open("a") as file:
            if new:
                file.write("actor_steps,walltime,actor,task,episode_return,episode_length\n")
            for actor, task, episode_return, length in ended:
                file.write(
                    f"{int(actor_steps)},{walltime:.1f},{actor},{self._tasks[task]},"
                    f"{episode_return},{length}\n"
                )


def mean(values: Sequence[float]) -> float:
    """The mean, NaN of nothing."""
    return float(np.mean(values)) if values else float("nan")
