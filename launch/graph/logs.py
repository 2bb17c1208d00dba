"""What a coordinator logs beside its episodes: a row of the run, and one of its tasks."""

import pathlib
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from run_folder import log_writer, task_returns
from run_folder.episodes import Row, mean

LABELS = ("actor", "episodes", "tasks")


class LogRow(NamedTuple):
    """What the logs hold of a moment."""

    counts: Mapping[str, float]  # updates, actor steps, and seconds
    measured: Mapping[str, float]  # other columns of the run's row
    ended: Sequence[Row]  # episodes, since the last row
    returns: Mapping[str, float]  # of each task lately


class Logs:
    """The files `logs/actor.csv` and, with several tasks, `logs/tasks.csv`.

    Args:
      run_dir: the run folder.
      several: whether there are several tasks.
      actor_steps: of the newest row, by this part of the run or the one before it.
    """

    def __init__(self, run_dir: pathlib.Path, several: bool, actor_steps: float) -> None:
        self._of_run = log_writer.make_logger(run_dir, "actor")
        self._of_tasks = log_writer.make_logger(run_dir, "tasks") if several else None
        self._logged = actor_steps

    def write(self, row: LogRow) -> None:
        """Appends what there is to tell; no row where no step was made since the last one."""
        counts, measured, ended, returns = row
        if counts["actor_steps"] == self._logged:
            return
        self._logged = counts["actor_steps"]
        of_episodes = dict(
            episode_return=mean([row.episode_return for row in ended]),
            episode_length=mean([row.episode_length for row in ended]),
        )
        self._of_run.write({**counts, **of_episodes, **measured})
        if self._of_tasks is not None:
            self._of_tasks.write({**counts, **task_returns.columns(returns)})
