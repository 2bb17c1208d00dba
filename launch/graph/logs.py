"""The coordinator's files: progress each second, and now and then a row of each log.

Rows come often enough for a curve of a run that lasts seconds.
"""

import json
import math
import pathlib
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

from replay.tables import Fill
from run_folder import disk, log_writer, task_returns
from run_folder.episodes import Episodes, mean
from run_folder.layout import RunFolder

LABELS = ("actor", "episodes", "tasks")
LOG_SECONDS = 10.0
PARTS = 100  # of a run's limit, each with a row at least
RATES = ("actor_steps", "learner_steps")  # counts of which it is told how fast they grow
MAX_NOTICES = 50  # in the progress file, which is written every second
UNWRITTEN_SECONDS = 30.0  # for which a run goes on whose progress cannot be written
_SAMPLES = 30


class Cadence:
    """Says when the next row is due: some seconds after the last one, or a part of a limit later.

    Args:
      limits: of the run, by the name of what they count; None is no limit.
      counts: at which the rows begin, by name.
      now: seconds of any clock; -infinity if the first row is due at once.
    """

    def __init__(
        self, limits: Mapping[str, float | None], counts: Mapping[str, float], now: float
    ) -> None:
        self._limits = {name: limit for name, limit in limits.items() if limit is not None}
        self._begin(self._parts(counts), now)

    def due(self, counts: Mapping[str, float], now: float) -> bool:
        """Whether a row is to be written now; if so, the next one is awaited from here on."""
        parts = self._parts(counts)
        is_due = now >= self._next or parts != self._passed
        if is_due:
            self._begin(parts, now)
        return is_due

    def _begin(self, parts: list[int], now: float) -> None:
        self._passed, self._next = parts, now + LOG_SECONDS

    def _parts(self, counts: Mapping[str, float]) -> list[int]:
        return [int(PARTS * counts[name] // limit) for name, limit in self._limits.items()]


def steps_between(limit: int | None, share: float) -> float:
    """How many steps one of several makes while all together make a part of their limit.

    Args:
      limit: of all together; None is no limit.
      share: of the one, in 0..1.
    """
    return float("inf") if limit is None else limit * share / PARTS


class Rates:
    """How fast a run goes: counts a second, over the last thirty times that they were taken."""

    def __init__(self) -> None:
        self._taken: deque[tuple[float, ...]] = deque(maxlen=_SAMPLES)

    def take(self, counts: Mapping[str, float]) -> None:
        """Takes the run's counts, walltime in seconds among them."""
        self._taken.append((counts["walltime"], *(counts[name] for name in RATES)))

    def clear(self) -> None:
        """Forgets all, as when a count has gone back."""
        self._taken.clear()

    def now(self) -> dict[str, float]:
        """By the names of `RATES`; 0 before counts were taken twice."""
        if not self._taken:
            return dict.fromkeys(RATES, 0.0)
        (began, *before), (ended, *after) = self._taken[0], self._taken[-1]
        seconds = max(ended - began, 1e-3)
        return {
            name: (new - old) / seconds for name, old, new in zip(RATES, before, after, strict=True)
        }


class Writing:
    """The progress file, and the logs of actors, episodes and tasks.

    Its caller holds a lock, but for `write` and `write_rows`, which one thread calls.

    Args:
      run_dir: the run folder.
      tasks: names of what is played; several have a log.
      limits: as of `Cadence`.
      counts: of the run so far, walltime among them.
    """

    def __init__(
        self,
        run_dir: pathlib.Path,
        tasks: Sequence[str],
        limits: Mapping[str, float | None],
        counts: Mapping[str, float],
    ) -> None:
        self.episodes = Episodes(run_dir, tasks)
        self.rates = Rates()
        self._progress = RunFolder(run_dir).progress
        labels = ("actor", "tasks") if len(tasks) > 1 else ("actor",)
        self._loggers = [log_writer.make_logger(run_dir, label) for label in labels]
        self._cadence = Cadence(limits, counts, counts["walltime"])
        self._logged = counts["actor_steps"]  # in the newest row
        self._written_at = counts["walltime"]  # the progress, or it might have been
        self._replay_size = math.nan
        self._rows = deque[tuple[dict[str, float], dict[str, float]]]()
        self._notices = deque[str](maxlen=MAX_NOTICES)
        self._kinds = set[str]()
        self._noticed = 0  # those that are no longer kept among them

    def notice(self, sentence: str, kind: str = "") -> None:
        """Keeps a sentence for the terminal; of a kind the first one alone."""
        if kind in self._kinds:
            return
        if kind:
            self._kinds.add(kind)
        print(sentence, flush=True)
        self._notices.append(sentence)
        self._noticed += 1

    def take_row_if_due(self, counts: Mapping[str, float]) -> None:
        """Keeps what the logs are to hold of this moment, if a row is due."""
        if self._cadence.due(counts, counts["walltime"]):
            self.take_row(counts)

    def take_row(self, counts: Mapping[str, float]) -> None:
        """Keeps it, unless no step was made since the last row."""
        if counts["actor_steps"] == self._logged:
            return
        self._logged = counts["actor_steps"]
        ended = self.episodes.take_new()
        at = {name: counts[name] for name in ("learner_steps", "actor_steps", "walltime")}
        of_run = dict(
            episode_return=mean([row.episode_return for row in ended]),
            episode_length=mean([row.episode_length for row in ended]),
            episodes=counts["episodes"],
            actor_steps_per_second=self.rates.now()["actor_steps"],
            replay_size=self._replay_size,
            replays_per_observation=_replays_per_observation(counts),
            environments_lost=counts["environments_lost"],
        )
        of_tasks = task_returns.columns(self.episodes.recent_returns())
        self._rows.append((at | of_run, at | of_tasks))

    def progress(
        self, counts: Mapping[str, float], fills: Mapping[str, Fill], **known: Any
    ) -> dict[str, Any]:
        """All that the progress file holds.

        Args:
          counts: of the run, now.
          fills: of replay's tables, by name; none where replay did not say.
          known: to the coordinator.
        """
        self._replay_size = sum(fill.items for fill in fills.values()) if fills else math.nan
        self.episodes.write()
        self.rates.take(counts)
        returns = self.episodes.recent_returns()
        return dict(
            known,
            counts=counts,
            rates=self.rates.now(),
            replay_size=self._replay_size,
            filling={name: fill for name, fill in fills.items() if fill.items < fill.min_size},
            replays_per_observation=_replays_per_observation(counts),
            returns=returns,
            aggregates=task_returns.aggregates(returns),
            notices=list(self._notices),
            noticed=self._noticed,
        )

    def write(self, progress: Mapping[str, Any]) -> bool:
        """Writes the progress file; returns whether that could be done.

        Raises:
          OSError: it could not be written for `UNWRITTEN_SECONDS`.
        """
        now = progress["counts"]["walltime"]
        try:
            disk.write(self._progress, json.dumps(progress), lasting=False)
            self._written_at = now
        except OSError:  # a save may fill the disk before it is given up
            if now >= self._written_at + UNWRITTEN_SECONDS:
                raise  # or nobody would hear of a notice, or see the run, any more
            return False
        return True

    def write_rows(self) -> None:
        """Appends the rows that were taken to the logs."""
        while self._rows:
            for logger, row in zip(self._loggers, self._rows.popleft(), strict=False):
                logger.write(row)


def _replays_per_observation(counts: Mapping[str, float]) -> float:
    steps = counts["actor_steps"]  # none, of a run that learns from demonstrations alone
    return counts["trained_steps"] / steps if steps else 0.0
