"""A learner's process."""

import math
import os
import threading
import time
import traceback
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import reverb
import tensorflow as tf
from acme.utils import counting

from launch.graph import learning, logs, process
from launch.graph.rejoining import Origin
from run_folder import checkpoints, log_writer, mirrors, saver
from run_folder.layout import CHECKPOINTS, RunFolder, learner_label
from run_folder.settings import Settings

FIRST_SAVE_SECONDS = 60.0  # or a run that dies sooner than an interval would begin anew for ever
REPLAY_SHARE = 0.7  # of the time to save, for the replay: an estimate may be wrong


class LearnerNode:
    """One agent's learner: learns, serves parameters, reports, saves."""

    @process.while_busy()
    def __init__(
        self,
        settings: Settings,
        name: str,
        origin: Origin,
        replays: Sequence[reverb.Client],
        coordinator: Any,
        recorded: Sequence[reverb.Client] = (),
    ) -> None:
        process.enter(
            settings.run_dir,
            f"{name}'s learner",
            (str(RunFolder().log(learner_label(name))), f"{CHECKPOINTS}/{learner_label(name)}/*"),
        )
        self._settings = settings
        self._name = name
        self._coordinator = coordinator
        learners = learning.join(coordinator, name, 0, settings.learners_per_agent)
        self._counter = counting.Counter()
        self._saving = threading.Lock()
        self._over = threading.Event()
        self._replay_save = threading.Thread()  # the newest; daemons end with their process
        self._metrics: dict[str, tf.Tensor] = {}
        self._counts = dict.fromkeys(("actor_steps", "episodes", "walltime"), 0.0)  # as last heard
        with learning.MAKING:
            self._learning = learning.make_learning(
                settings, name, replays, learners, self._counter, self._metrics.update, recorded
            )
        self._learner = self._learning.learner
        self._is_one_of_several = learners.size > 1
        self._waited = time.monotonic(), self._learner.waiting  # when that was logged last
        folder = settings.folder.checkpoints
        manifest = origin.of_learner(settings, name)
        if manifest is not None:
            # Of what was adopted from another run, that one's updates are not this one's.
            self._learner.read_checkpoint(str(folder / manifest.learner), manifest.learner_step)
            self._counter.increment(trained_steps=manifest.trained_steps)
            self._counts = {name: getattr(manifest, name) for name in self._counts}
        self._saver = saver.Saver(
            folder,
            name,
            self._learner.write_checkpoint,
            replays,
            self._learning.item_bytes,
            manifest,
            checkpoints.manifest_name(name, settings.paced_by),
            mirrors.of(settings.run_dir),
        )

    def get_variables(self, names: list[str]) -> list[list[np.ndarray]]:
        """The parameters, for actors and evaluators."""
        return self._learner.get_variables(names)

    def run(self) -> None:
        """Learns until the run ends or this learner's own limit is reached, then saves."""
        self._stop = process.stop_event()
        tear_down = threading.Thread(target=self._save_when_torn_down, daemon=True)
        tear_down.start()
        try:
            self._learning.warm_up()
            self._learn()
            self._learner.end()
            self._save_last()
            self._learning.priorities.close()
            self._wait_for_others()
        except Exception:
            # After a crash elsewhere the replay may end before this node hears of it.
            if not process.wait_for_stop(process.GRACE_SECONDS):
                raise
        tear_down.join()

    def _learn(self) -> None:
        limit = self._settings.max_learner_steps
        logger = log_writer.make_logger(self._settings.path, learner_label(self._name))
        interval = 60 * self._settings.checkpoint_minutes
        save_at = time.monotonic() + min(interval, FIRST_SAVE_SECONDS)
        limits = self._settings.limits
        rows = logs.Cadence(limits, dict.fromkeys(limits, 0), -math.inf)
        for _ in self._every(process.REPORT_SECONDS):
            stop, row = self._report()
            ends = stop or (limit is not None and self._learner.learner_steps >= limit)
            if row and (rows.due(row, time.monotonic()) or ends):
                logger.write(row)
            if ends:
                return
            if time.monotonic() >= save_at:
                self._save_and_go_on()
                save_at = time.monotonic() + interval

    def _wait_for_others(self) -> None:
        """Blocks no one; the coordinator may be started again, and not know that this has ended."""
        report_at = time.monotonic() + process.REPORT_SECONDS
        while not process.wait_for_stop(0):
            process.beat()
            self._learner.skip(timeout=process.REPORT_SECONDS)
            if time.monotonic() >= report_at:
                self._coordinator.report_saved(self._name)
                report_at = time.monotonic() + process.REPORT_SECONDS

    def _every(self, seconds: float) -> Iterator[None]:
        """Learns, and yields whenever `seconds` have passed, or a part of the learner's limit."""
        limit = self._settings.max_learner_steps
        while True:
            until = time.monotonic() + seconds
            most = self._learner.learner_steps + logs.steps_between(limit, 1)
            most = min(most, math.inf if limit is None else limit)
            while self._learner.learner_steps < most:
                if (left := until - time.monotonic()) <= 0:
                    break
                self._learning.try_step(timeout=max(left, 0.01))
            yield

    def _report(self) -> tuple[bool, dict[str, float]]:
        """Tells the coordinator how far it is; returns whether to stop, and a row for the log."""
        step = self._learner.learner_steps
        metrics, of_tasks = split_metrics(self._metrics, self._settings.tasks)
        if self._learner.largest_priority:
            metrics["largest_priority"] = self._learner.largest_priority
        if metrics and self._is_one_of_several:
            metrics["waiting_for_peers"] = self._share_of_waiting()
        stop = self._coordinator.report_learner(self._name, step, self._trained_steps(), metrics)
        self._counts = counts = self._coordinator.get_counts()
        if not metrics:
            return bool(stop), {}
        at = {"actor_steps": counts["actor_steps"], "walltime": counts["walltime"]}
        return bool(stop), {"learner_steps": step, **at, **metrics, **of_tasks}

    def _share_of_waiting(self) -> float:
        """Which part of the time since it was asked last this learner waited for the others."""
        then, before = self._waited
        now, waiting = self._waited = time.monotonic(), self._learner.waiting
        return (waiting - before) / max(now - then, 1e-9)

    def _save_and_go_on(self) -> None:
        """Saves the learner now, and the replay while it learns on: that may take minutes."""
        try:
            self._save()
        except saver.SaveError as error:
            self._tell(error)
            return
        if not self._replay_save.is_alive():
            self._replay_save = threading.Thread(target=self._save_replay, daemon=True)
            self._replay_save.start()

    @process.while_busy()
    def _save(self) -> None:
        with self._saving:
            self._write_checkpoint()

    def _write_checkpoint(self) -> None:
        counts = {**self._counts, "trained_steps": self._trained_steps()}
        self._saver.save(self._learner.learner_steps, counts)

    def _save_replay(self) -> None:
        try:
            self._saver.save_replay()
        except saver.SaveError as error:
            if not self._stop.wait(process.GRACE_SECONDS):  # or a server was torn down
                self._tell(error)

    def _tell(self, error: saver.SaveError) -> None:
        minutes = self._settings.checkpoint_minutes
        self._coordinator.notice(
            f"{error} The last whole one is kept. The next attempt is in {minutes:g} minutes."
        )

    @process.while_busy()
    def _save_last(self) -> None:
        """Saves the learner; the replay too if the time that stopping may take is enough."""
        self._save()
        if self._replay_save.is_alive():  # it may be enough
            seconds = REPLAY_SHARE * self._coordinator.seconds_to_save()
            self._replay_save.join(None if math.isinf(seconds) else max(seconds, 0))
        seconds = REPLAY_SHARE * self._coordinator.seconds_to_save()
        if not self._replay_save.is_alive() and self._saver.replay_seconds() <= seconds:
            self._save_replay()
        self._over.set()
        self._coordinator.report_saved(self._name)

    def _save_when_torn_down(self) -> None:
        """Saves after a crash elsewhere, when `run` may wait for ever for a node that is gone.

        Where `run` has saved this very step, and perhaps waits for the replay still, there is
        nothing to do: a second save of it would be cut short.
        """
        self._stop.wait()
        if self._over.is_set():
            return
        try:
            if not self._is_saved():
                with self._saving:
                    if not self._is_saved():
                        self._write_checkpoint()
        except Exception:  # an update was not finite, for one
            traceback.print_exc()
            os._exit(1)
        os._exit(process.TERMINATED)

    def _is_saved(self) -> bool:
        """Whether the newest checkpoint is of the parameters as they are; of the first, none is."""
        last = self._saver.last
        return (last.learner_step if last else 0) == self._learner.learner_steps

    def _trained_steps(self) -> int:
        return int(self._counter.get_counts().get("trained_steps", 0))


def split_metrics(
    metrics: Mapping[str, tf.Tensor], tasks: Sequence[str]
) -> tuple[dict[str, float], dict[str, float]]:
    """An update's scalars, and its vectors, with a number for each task, as `<name>/<task>`."""
    scalars: dict[str, float] = {}
    of_tasks: dict[str, float] = {}
    for name, value in metrics.items():
        values = np.asarray(value)
        if values.ndim:
            columns = (f"{name}/{task}" for task in tasks)
            of_tasks |= zip(columns, values.tolist(), strict=True)
        else:
            scalars[name] = float(values)
    return scalars, of_tasks
