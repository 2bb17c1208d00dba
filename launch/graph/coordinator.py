"""Counts, limits and the end of a run: every node reports here and hears whether to stop."""

import contextlib
import math
import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any

import reverb

from launch.graph import process, rejoining
from launch.graph.goal import Goal
from launch.graph.learning import Meetings
from launch.graph.logs import LABELS, Writing
from replay import tables
from run_folder import layout, resuming
from run_folder.episodes import Ended
from run_folder.layout import RunFolder

PROGRESS_SECONDS = 1.0
LOGS = tuple(str(RunFolder().log(label)) for label in LABELS)
ALL_LEARNED = "every learner has reached its limit"
SAVE_SECONDS = 9.0  # from the request to end a run to the end of its last save


class Coordinator:
    """The node that knows how far the run is.

    Nodes call its methods over Courier; `run` writes what `Writing` does. A run is `finished` once
    every learner has saved. Nothing counts any more once the end is decided, so that the last
    checkpoint knows of all that is logged. Lost environments, and tasks that are left out, are
    counted from each launch on.

    Args:
      run_dir: the run folder.
      tasks: names of what is played.
      num_actors: of the run.
      counts: steps, episodes and walltime of the run so far; zero for a new one.
      learned: updates and trained steps so far, by agent; the pacing one first.
      limits: after which the run stops, as `Settings.limits`; each learner stops at its own.
      until_return: as of `Goal`, and `until_evaluations` too.
      replays: clients of the replay servers.
    """

    @process.while_busy()
    def __init__(
        self,
        run_dir: str,
        tasks: Sequence[str],
        num_actors: int,
        counts: dict[str, float],
        learned: dict[str, Sequence[int]],
        *,
        limits: Mapping[str, float | None],
        until_return: float | None = None,
        until_evaluations: int = 1,
        replays: Sequence[reverb.Client],
    ) -> None:
        process.enter(run_dir, "coordinator", LOGS)
        path = layout.local(run_dir)
        self._stop_file = RunFolder(path).stop
        self._paced_by = next(iter(learned))
        steps, trained_steps = learned[self._paced_by]
        self._counts = dict(
            counts, learner_steps=steps, trained_steps=trained_steps, environments_lost=0
        )
        self._started = time.monotonic()
        self._limits = limits
        self._goal = Goal(learned, until_return, until_evaluations)
        self._asked_at: float | None = None
        self._learning = set(learned)
        self._replays = replays
        self._lock = threading.Lock()
        self._reason = ""
        self._num_actors = num_actors
        self._acting = set[int]()  # since this process began
        self._left_out: dict[str, set[int]] = {task: set() for task in tasks}
        self._learners: dict[str, dict[str, float]] = {
            name: dict(learner_steps=steps) for name, (steps, _) in learned.items()
        }
        self._evaluations: dict[str, dict[str, float]] = {}
        if (written := rejoining.last_progress(path, LABELS, counts)) is not None:
            self._counts |= written["counts"]
            self._learners |= written["learners"]
            self._evaluations |= written["evaluations"]
        self._begun = dict(self._counts)
        self._reported = self._begun["walltime"]  # when an actor reported last
        self._writing = Writing(path, tasks, self._limits, self._counts)
        self.meet = Meetings().come  # that learners of one agent call
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
            for left_out in self._left_out.values():
                left_out.difference_update(actors)  # they were started again, and play
            if not self._reason:
                since, now = (self._counts["actor_steps"], self._reported), self._walltime()
                self._writing.episodes.add(episodes, steps, since, now)
                self._counts["actor_steps"] += steps
                self._counts["environments_lost"] += lost
                self._counts["episodes"] += len(episodes)
                self._reported = now
                self._writing.take_row_if_due(self._now())
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

    def notice(self, sentence: str, kind: str = "") -> None:
        """Takes what the one who started the run should hear.

        Args:
          sentence: what is told.
          kind: of which one is enough, whoever has it first; all are told that have none.
        """
        with self._lock:
            self._writing.notice(sentence, kind)

    def report_learner(
        self, agent: str, step: int, trained_steps: int, metrics: dict[str, float]
    ) -> bool:
        """Takes a learner's counts and newest metrics; says whether to stop."""
        with self._lock:
            if agent == self._paced_by:
                if step < self._counts["learner_steps"]:  # the learner was started again
                    self._writing.rates.clear()
                self._counts["learner_steps"] = step
                self._counts["trained_steps"] = trained_steps
            self._learners[agent] = dict(metrics, learner_steps=step)
            self._writing.take_row_if_due(self._now())
            self._end_at_limit()
        return self.should_stop()

    def largest_priority(self, agent: str) -> float:
        """The largest priority that an agent's learner ever gave; 1 before the first."""
        with self._lock:
            return self._learners[agent].get("largest_priority", 1.0)

    def report_evaluation(self, agent: str, result: dict[str, float]) -> None:
        """Takes an agent's newest evaluation's means; a call that is heard twice counts once."""
        with self._lock:
            is_new = result != self._evaluations.get(agent)
            self._evaluations[agent] = result
            if is_new and not self._reason:
                self._end(self._goal.take(agent, result))

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
            self._writing.episodes.write()
            return self._now()

    def should_stop(self) -> bool:
        """Whether the run is ending."""
        return bool(self._reason)

    def stop(self, reason: str) -> None:
        """Ends the run, soon: somebody waits for it."""
        with self._lock:
            self._end(reason)
            self._asked_at = self._asked_at or time.monotonic()

    def seconds_to_save(self) -> float:
        """Time that saving may still take at the end: without end at a limit."""
        with self._lock:
            if self._asked_at is None:
                return math.inf
            return SAVE_SECONDS - (time.monotonic() - self._asked_at)

    def run(self) -> None:
        """Writes logs and progress until the program ends."""
        while not process.wait_for_stop(PROGRESS_SECONDS):
            process.beat()
            if self._stop_file.exists():
                self.stop("it was asked to stop")
            self._write_progress()
            with self._lock:
                self._writing.take_row_if_due(self._now())
                self._end_at_limit()
                if not self._learning:
                    self._writing.take_row(self._now())
            self._writing.write_rows()
            if not self._learning:
                break
        while not self._write_progress() and not process.wait_for_stop(PROGRESS_SECONDS):
            process.beat()  # whoever waits for the end hears of it in that file
        with process.while_busy():  # waiting for the end
            process.wait_for_stop()

    def _end_at_limit(self) -> None:
        updates = min(learner["learner_steps"] for learner in self._learners.values())
        reached = resuming.limits_reached(self._limits, dict(self._now(), learner_steps=updates))
        if "actor_steps" in reached:
            self._end(f"{reached['actor_steps']:,} actor steps were reached")
        if "learner_steps" in reached:
            self._end(ALL_LEARNED)
        if "walltime" in reached:
            self._end(f"{resuming.limit_flag('walltime', reached['walltime'])} was reached")

    def _end(self, reason: str) -> None:
        self._reason = self._reason or reason

    def _walltime(self) -> float:
        return self._begun["walltime"] + time.monotonic() - self._started

    def _now(self) -> dict[str, float]:
        return dict(self._counts, walltime=self._walltime())

    def _write_progress(self) -> bool:
        fills: dict[str, tables.Fill] = {}
        with contextlib.suppress(reverb.errors.ReverbError, RuntimeError):  # not up yet, or busy
            fills = tables.fills(self._replays, timeout=2)
        with self._lock:
            left_out = set[int]().union(*self._left_out.values())
            progress: dict[str, Any] = self._writing.progress(
                self._now(),
                fills,
                state="running" if self._learning else "finished",
                reason=self._reason,
                limits=self._limits,
                goal=self._goal.progress(),
                acting=[len(self._acting - left_out), self._num_actors - len(left_out)],
                learners=self._learners,
                evaluations=self._evaluations,
                left_out={task: len(actors) for task, actors in self._left_out.items() if actors},
            )
        return self._writing.write(progress)
