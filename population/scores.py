"""The score of a member, read from its run folder."""

import math
from collections.abc import Mapping, Sequence

import numpy as np

from environments import scores
from run_folder import log_reader, task_returns
from run_folder.episodes import RECENT_EPISODES, mean
from run_folder.layout import RunFolder
from run_folder.log_reader import Log

_FIRST_BYTES = 1 << 18  # thousands of episodes


def is_normalised(tasks: Sequence[str]) -> bool:
    """Tells whether at least one of the tasks has human scores."""
    return any(scores.human_normalised(task, 0.0) is not None for task in tasks)


def score(folder: RunFolder, tasks: Sequence[str], since: int = 0) -> float:
    """The score of a member's weights in training; NaN where no episode has ended `since`.

    It is the mean capped human-normalised score over the tasks that have human scores and were
    played (Espeholt et al. 2018, Table F.1). Where no task has human scores, it is the mean over
    tasks of their mean returns. A task's return is the mean over its last episodes, as a run shows
    it.

    Args:
      folder: the member's run.
      tasks: the tasks that it plays.
      since: actor steps at which it took over its weights.
    """
    return of_returns(recent_returns(folder, tasks, since))


def of_returns(returns: Mapping[str, float]) -> float:
    """The score of mean returns by task. A task with NaN is left out; all NaN give NaN."""
    if is_normalised(list(returns)):
        return task_returns.aggregates(returns)["mean_capped"]
    return mean([value for value in returns.values() if not math.isnan(value)])


def recent_returns(folder: RunFolder, tasks: Sequence[str], since: int) -> dict[str, float]:
    """Each task's mean return over its last episodes; NaN where none has ended since.

    Of a log of millions of episodes no more is read than has to be.
    """
    path, last_bytes = folder.log("episodes"), _FIRST_BYTES
    size = path.stat().st_size if path.exists() else 0
    while True:
        log = episodes(folder, last_bytes=last_bytes)
        steps, played = log["actor_steps"], log.texts.get("task", np.array([]))
        is_enough = all(np.count_nonzero(played == task) >= RECENT_EPISODES for task in tasks)
        if last_bytes >= size or is_enough or (len(log) and steps[0] <= since):
            return recent_of(log, tasks, since)
        last_bytes *= 4


def last_logged(folder: RunFolder) -> int:
    """Actor steps of a member's last logged episode; its learner may have heard of fewer."""
    steps = episodes(folder, last_bytes=_FIRST_BYTES).last("actor_steps")
    return 0 if math.isnan(steps) else int(steps)


def episodes(folder: RunFolder, *, last_bytes: int | None = None) -> Log:
    """The log of a member's training episodes, or its last so many bytes: a row for each."""
    return log_reader.read(folder.log("episodes"), texts=("task",), last_bytes=last_bytes)


def recent_of(log: Log, tasks: Sequence[str], since: int) -> dict[str, float]:
    """Each task's mean return over its last episodes in a log; NaN where none has ended since."""
    log = log.where(log["actor_steps"] > since)
    returns, played = log["episode_return"], log.texts.get("task", np.array([]))
    return {task: mean(list(returns[played == task][-RECENT_EPISODES:])) for task in tasks}
