"""Counts, progress and the end of a run: every node reports here and hears whether to stop."""

import contextlib
import json
import math
import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

import reverb

from launch.graph import heartbeats, process, rejoining
from launch.graph.cadence import Cadence
from launch.graph.logs import LABELS, LogRow, Logs
from launch.graph.meetings import Meetings
from launch.graph.rates import Rates
from replay import tables
from run_folder import disk, layout, task_returns
from run_folder.episodes import Ended, Episodes
from run_folder.layout import RunFolder

PROGRESS_SECONDS = 1.0
LOGS = tuple(str(RunFolder().log(label)) for label in LABELS)
ALL_LEARNED = "every learner has reached its limit"
UNWRITTEN_SECONDS = 30.0  # for which a run goes on whose progress cannot be written
MAX_NOTICES = 50  # in the progress file, which is written every second
SAVE_SECONDS = 9.0  # from the request to end a run to the end of its last save


class Coordinator:
    """The node that knows how far the run is.

    Nodes call its methods over Courier; `run` writes `logs/actor.csv`, `logs/episodes.csv`, with
    several tasks `logs/tasks.csv`, and the progress file that the launching terminal draws. A run
    is `finished` once every learner has saved. Nothing counts any more once the end is decided, so
    that the last checkpoint knows of all that is logged. Lost environments, and tasks that are left
    out, are counted from each launch on.

    Args:
      run_dir: the run folder.
      tasks: names of what is played.
      num_actors: of the run.
      counts: steps, episodes and walltime of the run so far; zero for a new one.
      learned: updates and trained steps so far, by agent; the pacing one first.
      max_actor_steps: after which the run stops; None is no limit.
      max_learner_steps: of each learner, which itself stops there; None is no limit.
      replays: clients of the replay servers.
    """

    @heartbeats.while_busy()
    def __init__(
        self,
        run_dir: str,
        tasks: Sequence[str],
        num_actors: int,
        counts: dict[str, float],
        learned: dict[str, Sequence[int]],
        *,
        max_actor_steps: int | None,
        max_learner_steps: int | None,
        replays: Sequence[reverb.Client],
    ) -> None:
        process.enter(run_dir, "coordinator", LOGS)
        self._path = layout.local(run_dir)
        self._first = next(iter(learned))
        steps, trained_steps = learned[self._first]
        self._counts = dict(
            counts, learner_steps=steps, trained_steps=trained_steps, environments_lost=0
        )
        self._started = time.monotonic()
        self._begun = dict(counts)
        self._logged = counts["actor_steps"]  # in the newest row
        self._limits = {"actor_steps": max_actor_steps, "learner_steps": max_learner_steps}
        self._asked_at: float | None = None
        self._learning = set(learned)
        self._replays = replays
        self._lock = threading.Lock()
        self._reason = ""
        self._episodes = Episodes(self._path, tasks)
        self._num_actors = num_actors
        self._acting = set[int]()  # since this process began
        self._left_out: dict[str, set[int]] = {task: set() for task in tasks}
        self._notices = deque[str](maxlen=MAX_NOTICES)
        self._kinds = set[str]()  # of notices of which one is enough
        self._noticed = 0  # those that are no longer kept among them
        self._meetings = Meetings()
        self._learners: dict[str, dict[str, float]] = {
            name: dict(learner_steps=steps) for name, (steps, _) in learned.items()
        }
        self._evaluations: dict[str, dict[str, float]] = {}
        self._rates = Rates()
        self._replay_size = math.nan
        self._rows: list[LogRow] = []  # that are not in the logs yet
        if (written := rejoining.last_progress(self._path, LABELS, counts)) is not None:
            self._take_up(written)
        self._written_at = self._started  # the progress, or it might have been
        self._reported = self._begun["walltime"]  # when an actor reported last
        self._cadence = Cadence(self._limits, self._counts, self._started)
        self._end_at_limit()

    def report_steps(
        self, actors: Sequence[int], steps: int, episodes: Sequence[Ended], lost: int
    ) -> bool:
        """Counts what an actor node did; says whether to stop.

        Args:
          actors: that act there.
          steps: of its environments, since its last report.
          episodes: that ended since then.
          lost: environments whose processes died since then and were replaced.
        """
        with self._lock:
            self._acting.update(actors)
            if not self._reason:
                since, now = (self._counts["actor_steps"], self._reported), self._walltime()
                self._episodes.add(episodes, steps, since, now)
                self._counts["actor_steps"] += steps
                self._counts["environments_lost"] += lost
                self._counts["episodes"] += len(episodes)
                self._reported = now
                self._take_row_if_due()
                self._end_at_limit()
        return self.should_stop()

    def steps_before(self, actors: Sequence[int]) -> int:
        """Actor steps of the run when these actors begin; none where all begin, in a new run.

        What begins again is to draw otherwise than the first time, and a new run as its seed says.
        """
        with self._lock:
            began = self._acting.issuperset(actors)
            return int((self._counts if began else self._begun)["actor_steps"])

    def leave_out(self, task: str, actors: Sequence[int], why: str) -> bool:
        """Hears that actors cannot play a task; says whether the run goes on without that.

        It does not where it has one task, or where no actor is left.
        """
        with self._lock:
            self._left_out[task].update(actors)
            left_out = sum(map(len, self._left_out.values()))
            goes_on = len(self._left_out) > 1 and left_out < self._num_actors
        if goes_on:
            numbers = ", ".join(map(str, actors))
            self.notice(f"{task} is left out by actors {numbers}, who cannot play it: {why}")
        return goes_on

    def meet(self, agent: str, rank: int, size: int, address: str) -> list[str]:
        """Takes where a learner of several is to be reached; returns where all are, if they came.

        As `Meetings.come`.
        """
        return self._meetings.come(agent, rank, size, address)

    def notice(self, sentence: str, kind: str = "") -> None:
        """Takes what the one who started the run should hear.

        Args:
          sentence: what is told.
          kind: of which one is enough, whoever has it first; all are told that have none.
        """
        with self._lock:
            if kind in self._kinds:
                return
            if kind:
                self._kinds.add(kind)
            print(sentence, flush=True)
            self._notices.append(sentence)
            self._noticed += 1

    def report_learner(
        self, agent: str, step: int, trained_steps: int, metrics: dict[str, float]
    ) -> bool:
        """Takes a learner's counts and newest metrics; says whether to stop."""
        with self._lock:
            if agent == self._first:
                if step < self._counts["learner_steps"]:  # the learner was started again
                    self._rates.clear()
                self._counts["learner_steps"] = step
                self._counts["trained_steps"] = trained_steps
            self._learners[agent] = dict(metrics, learner_steps=step)
            self._take_row_if_due()
            self._end_at_limit()
        return self.should_stop()

    def largest_priority(self, agent: str) -> float:
        """The largest priority that an agent's learner ever gave; 1 before the first."""
        with self._lock:
            return self._learners[agent].get("largest_priority", 1.0)

    def report_evaluation(self, agent: str, result: dict[str, float]) -> None:
        """Takes an agent's newest evaluation's means."""
        with self._lock:
            self._evaluations[agent] = result

    def report_saved(self, agent: str) -> None:
        """Hears, again and again, that a learner has stopped and saved."""
        with self._lock:
            self._learning.discard(agent)
            if not self._learning:
                self._end(ALL_LEARNED)

    def get_counts(self) -> dict[str, float]:
        """All counts, walltime in seconds among them.

        Of what a checkpoint counts every episode is in the log, whoever is killed next.
        """
        with self._lock:
            self._episodes.write()
            return dict(self._counts, walltime=self._walltime())

    def should_stop(self) -> bool:
        """Whether the run is ending."""
        return bool(self._reason)

    def stop(self, reason: str) -> None:
        """Ends the run, soon: somebody waits for it."""
        with self._lock:
            self._end(reason)
            self._asked_at = self._asked_at or time.monotonic()

    def seconds_to_save(self) -> float:
        """What is left of the time that saving may take at the end: without end at a limit."""
        with self._lock:
            if self._asked_at is None:
                return math.inf
            return SAVE_SECONDS - (time.monotonic() - self._asked_at)

    def run(self) -> None:
        """Writes logs and progress until the program ends."""
        logs = Logs(self._path, len(self._left_out) > 1, self._logged)
        while not process.wait_for_stop(PROGRESS_SECONDS):
            heartbeats.beat()
            if RunFolder(self._path).stop.exists():
                self.stop("it was asked to stop")
            self._write_progress()
            with self._lock:
                self._take_row_if_due()
                if not self._learning:
                    self._take_row()
            self._write_logs(logs)
            if not self._learning:
                break
        self._write_progress()
        with heartbeats.while_busy():  # waiting for the end
            process.wait_for_stop()

    def _take_up(self, written: dict[str, Any]) -> None:
        """Goes on with what this node wrote when it was run before in this launch."""
        self._counts |= written["counts"]
        self._begun = dict(written["counts"])
        self._logged = written["counts"]["actor_steps"]
        self._learners |= written["learners"]
        self._evaluations |= written["evaluations"]

    def _end_at_limit(self) -> None:
        limit, updates = self._limits["actor_steps"], self._limits["learner_steps"]
        if limit is not None and self._counts["actor_steps"] >= limit:
            self._end(f"{limit:,} actor steps were reached")
        made = [learner["learner_steps"] for learner in self._learners.values()]
        if updates is not None and min(made) >= updates:
            self._end(ALL_LEARNED)

    def _end(self, reason: str) -> None:
        self._reason = self._reason or reason

    def _walltime(self) -> float:
        return self._begun["walltime"] + time.monotonic() - self._started

    def _fills(self) -> dict[str, tables.Fill]:
        with contextlib.suppress(reverb.errors.ReverbError, RuntimeError):
            return tables.fills(self._replays, timeout=2)
        return {}  # not up yet, or busy with a checkpoint

    def _write_progress(self) -> None:
        fills = self._fills()
        with self._lock:
            self._replay_size = _size(fills)
            self._episodes.write()
            walltime = self._walltime()
            returns = self._episodes.recent_returns()
            self._rates.take(walltime, self._counts)
            state = dict(
                state="running" if self._learning else "finished",
                reason=self._reason,
                counts=dict(self._counts, walltime=walltime),
                limits=self._limits,
                acting=self._count_acting(),
                rates=self._rates.now(),
                replay_size=self._replay_size,
                filling={name: fill for name, fill in fills.items() if fill.items < fill.min_size},
                replays_per_observation=self._replays_per_observation(),
                learners=self._learners,
                returns=returns,
                aggregates=task_returns.aggregates(returns),
                evaluations=self._evaluations,
                left_out={task: len(actors) for task, actors in self._left_out.items() if actors},
                notices=list(self._notices),
                noticed=self._noticed,
            )
        now = time.monotonic()
        try:
            path = RunFolder(self._path).progress
            disk.write(path, json.dumps(state), lasting=False)
            self._written_at = now
        except OSError:  # a save may fill the disk before it is given up
            if now >= self._written_at + UNWRITTEN_SECONDS:
                raise  # or nobody would hear of a notice, or see the run, any more

    def _count_acting(self) -> list[int]:
        """How many actors act, of how many that can."""
        left_out = set[int]().union(*self._left_out.values())
        return [len(self._acting - left_out), self._num_actors - len(left_out)]

    def _replays_per_observation(self) -> float:
        return self._counts["trained_steps"] / max(self._counts["actor_steps"], 1)

    def _take_row_if_due(self) -> None:
        if self._cadence.due(self._counts, time.monotonic()):
            self._take_row()

    def _take_row(self) -> None:
        """Keeps what the logs are to hold of this moment."""
        counts = {name: self._counts[name] for name in ("learner_steps", "actor_steps")}
        measured = dict(
            episodes=self._counts["episodes"],
            actor_steps_per_second=self._rates.now()["actor_steps"],
            replay_size=self._replay_size,
            replays_per_observation=self._replays_per_observation(),
            environments_lost=self._counts["environments_lost"],
        )
        self._rows.append(
            LogRow(
                dict(counts, walltime=self._walltime()),
                measured,
                self._episodes.take_new(),
                self._episodes.recent_returns(),
            )
        )

    def _write_logs(self, logs: Logs) -> None:
        with self._lock:
            rows, self._rows = self._rows, []
        for row in rows:
            logs.write(row)


def _size(fills: Mapping[str, tables.Fill]) -> float:
    """Items in all tables, NaN where that is not known."""
    return sum(fill.items for fill in fills.values()) if fills else math.nan
