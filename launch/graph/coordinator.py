"""Counts, progress and the end of a run: every node reports here and hears whether to stop."""

import json
import math
import threading
import time
from collections import deque
from collections.abc import Sequence

import launchpad as lp
import reverb
from acme.utils.loggers import base

from launch.graph import heartbeats, process
from replay import tables
from run_folder import bucket, log_writer, task_returns, whole_files
from run_folder.episodes import Ended, Episodes, mean
from run_folder.layout import RunFolder

LOG_SECONDS = 10.0
PROGRESS_SECONDS = 1.0
LOGS = tuple(str(RunFolder().log(label)) for label in ("actor", "episodes", "tasks"))
SAVE_SECONDS = 9.0  # from the request to end a run to the end of its last save


class Coordinator:
    """The node that knows how far the run is.

    Nodes call its methods over Courier; `run` writes `logs/actor.csv`, `logs/episodes.csv`, with
    several tasks `logs/tasks.csv`, and the progress file that the launching terminal draws. A run
    is `finished` once every learner has saved. Lost environments are counted from each launch on.

    Args:
      run_dir: the run folder.
      tasks: names of what is played.
      counts: steps, episodes and walltime of the run so far; zero for a new one.
      learned: learner steps and trained steps so far, by agent; the pacing one first.
      max_actor_steps: after which the run stops; None is no limit.
      max_learner_steps: for the time left; the learners themselves stop there.
      replays: clients of the replay servers.
    """

    @heartbeats.while_busy()
    def __init__(
        self,
        run_dir: str,
        tasks: Sequence[str],
        counts: dict[str, float],
        learned: dict[str, Sequence[int]],
        *,
        max_actor_steps: int | None,
        max_learner_steps: int | None,
        replays: Sequence[reverb.Client],
    ) -> None:
        process.enter(run_dir, "coordinator", LOGS)
        self._path = bucket.local(run_dir)
        self._first = next(iter(learned))
        steps, trained_steps = learned[self._first]
        self._counts = dict(
            counts, learner_steps=steps, trained_steps=trained_steps, environments_lost=0
        )
        self._started = time.time()
        self._begun = dict(counts)
        self._logged = counts["actor_steps"]  # in the newest row
        self._limits = {"actor_steps": max_actor_steps, "learner_steps": max_learner_steps}
        self._asked_at: float | None = None
        self._learning = set(learned)
        self._replays = replays
        self._lock = threading.Lock()
        self._reason = ""
        self._episodes = Episodes(self._path, tasks)
        self._learners: dict[str, dict[str, float]] = {
            name: dict(learner_steps=steps) for name, (steps, _) in learned.items()
        }
        self._evaluations: dict[str, dict[str, float]] = {}
        self._rates: deque[tuple[float, float, float]] = deque(maxlen=30)
        self._end_at_limit()

    def report_steps(self, steps: int, episodes: Sequence[Ended], lost: int) -> bool:
        """Counts what an actor node did; says whether to stop.

        Args:
          steps: of its environments, since its last report.
          episodes: that ended since then: actor, task, return, length.
          lost: environments whose processes died since then and were replaced.
        """
        with self._lock:
            self._counts["actor_steps"] += steps
            self._counts["environments_lost"] += lost
            self._counts["episodes"] += len(episodes)
            self._episodes.add(episodes)
            self._end_at_limit()
        return self.should_stop()

    def report_learner(
        self, agent: str, step: int, trained_steps: int, metrics: dict[str, float]
    ) -> bool:
        """Takes a learner's counts and newest metrics; says whether to stop."""
        with self._lock:
            if agent == self._first:
                self._counts["learner_steps"] = step
                self._counts["trained_steps"] = trained_steps
            self._learners[agent] = dict(metrics, learner_steps=step)
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
        """Hears that a learner has stopped and saved."""
        with self._lock:
            self._learning.discard(agent)
            if not self._learning:
                self._end("every learner has reached its limit")

    def get_counts(self) -> dict[str, float]:
        """All counts, walltime in seconds among them."""
        with self._lock:
            return dict(self._counts, walltime=self._walltime())

    def should_stop(self) -> bool:
        """Whether the run is ending."""
        return bool(self._reason)

    def stop(self, reason: str) -> None:
        """Ends the run, soon: somebody waits for it."""
        with self._lock:
            self._end(reason)
            self._asked_at = self._asked_at or time.time()

    def seconds_to_save(self) -> float:
        """What is left of the time that saving may take at the end: without end at a limit."""
        with self._lock:
            if self._asked_at is None:
                return math.inf
            return SAVE_SECONDS - (time.time() - self._asked_at)

    def run(self) -> None:
        """Writes logs and progress until the program ends."""
        actor_log = log_writer.make_logger(self._path, "actor")
        several = len(self._episodes.recent_returns()) > 1
        task_log = log_writer.make_logger(self._path, "tasks") if several else None
        next_log = time.time() + LOG_SECONDS
        while not lp.wait_for_stop(PROGRESS_SECONDS):
            heartbeats.beat()
            if RunFolder(self._path).stop.exists():
                self.stop("it was asked to stop")
            self._write_progress()
            if time.time() >= next_log or not self._learning:
                self._write_logs(actor_log, task_log)
                next_log = time.time() + LOG_SECONDS
            if not self._learning:
                break
        self._write_progress()
        with heartbeats.while_busy():  # waiting for the end
            lp.wait_for_stop()

    def _end_at_limit(self) -> None:
        limit = self._limits["actor_steps"]
        if limit is not None and self._counts["actor_steps"] >= limit:
            self._end(f"{limit:,} actor steps were reached")

    def _end(self, reason: str) -> None:
        self._reason = self._reason or reason

    def _walltime(self) -> float:
        return self._begun["walltime"] + time.time() - self._started

    def _replay_size(self) -> float:
        try:
            return tables.num_items(self._replays, timeout=2)
        except (reverb.errors.ReverbError, RuntimeError):  # not up yet, or busy with a checkpoint
            return float("nan")

    def _write_progress(self) -> None:
        size = self._replay_size()
        with self._lock:
            walltime = self._walltime()
            returns = self._episodes.recent_returns()
            self._rates.append(
                (walltime, self._counts["actor_steps"], self._counts["learner_steps"])
            )
            state = dict(
                state="running" if self._learning else "finished",
                reason=self._reason,
                counts=dict(self._counts, walltime=walltime),
                limits=self._limits,
                rates=self._current_rates(),
                replay_size=size,
                replays_per_observation=self._replays_per_observation(),
                learners=self._learners,
                returns=returns,
                aggregates=task_returns.aggregates(returns),
                evaluations=self._evaluations,
            )
        whole_files.write(RunFolder(self._path).progress, json.dumps(state))

    def _current_rates(self) -> dict[str, float]:
        (t0, actor0, learner0), (t1, actor1, learner1) = self._rates[0], self._rates[-1]
        seconds = max(t1 - t0, 1e-3)
        return {
            "actor_steps": (actor1 - actor0) / seconds,
            "learner_steps": (learner1 - learner0) / seconds,
        }

    def _replays_per_observation(self) -> float:
        return self._counts["trained_steps"] / max(self._counts["actor_steps"], 1)

    def _write_logs(self, actor_log: base.Logger, task_log: base.Logger | None) -> None:
        size = self._replay_size()
        with self._lock:
            ended = self._episodes.take_new()
            returns = self._episodes.recent_returns()
            counts = dict(
                learner_steps=self._counts["learner_steps"],
                actor_steps=self._counts["actor_steps"],
                walltime=self._walltime(),
            )
            row = dict(
                counts,
                episodes=self._counts["episodes"],
                episode_return=mean([episode_return for _, _, episode_return, _ in ended]),
                episode_length=mean([length for *_, length in ended]),
                actor_steps_per_second=self._current_rates()["actor_steps"] if self._rates else 0.0,
                replay_size=size,
                replays_per_observation=self._replays_per_observation(),
                environments_lost=self._counts["environments_lost"],
            )
        self._episodes.write(ended, counts["actor_steps"], counts["walltime"])
        if counts["actor_steps"] == self._logged:  # by this part of the run or the one before it
            return
        self._logged = counts["actor_steps"]
        actor_log.write(row)
        if task_log is not None:
            task_log.write(counts | task_returns.columns(returns))
