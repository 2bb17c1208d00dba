"""What runs inside a learner's process."""

import os
import threading
import time
import traceback
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import launchpad as lp
import numpy as np
import reverb
import tensorflow as tf
from acme.utils import counting

from agents.learner import Learner
from launch.graph import heartbeats, process
from launch.graph.actor_node import REPORT_SECONDS
from replay import dataset, priorities, tables
from run_folder import checkpoints, log_writer, mirrors, saver
from run_folder.building import all_tables, core_state_spec, environment_spec, make_agents, seed_of
from run_folder.layout import CHECKPOINTS, RunFolder, learner_label
from run_folder.settings import Settings

LOG_SECONDS = 10.0
REPLAY_SHARE = 0.7  # of the time to save, for the replay: an estimate may be wrong


class LearnerNode:
    """One agent's learner: learns, serves parameters, reports, saves."""

    @heartbeats.while_busy()
    def __init__(
        self,
        settings: Settings,
        name: str,
        manifest: checkpoints.Manifest | None,
        replays: Sequence[reverb.Client],
        coordinator: Any,
    ) -> None:
        process.enter(
            settings.run_dir,
            f"{name}'s learner",
            (str(RunFolder().log(learner_label(name))), f"{CHECKPOINTS}/{learner_label(name)}/*"),
        )
        self._settings = settings
        self._name = name
        self._coordinator = coordinator
        tf.random.set_seed(seed_of(settings, "network"))
        agents = make_agents(settings)
        agent = agents[name]
        spec = environment_spec(settings)
        self._counter = counting.Counter()
        self._saving = threading.Lock()
        self._over = threading.Event()
        self._metrics: dict[str, tf.Tensor] = {}
        self._counts = dict.fromkeys(("actor_steps", "episodes", "walltime"), 0.0)  # as last heard
        table = agent.tables[0]
        self._priorities = priorities.PriorityUpdater(replays, table.name)
        update = agent.make_update(spec)
        batches = dataset.make_dataset(
            [replay.server_address for replay in replays],
            agent.tables,
            spec,
            core_state_spec(agent, spec),
            tables.block_length(all_tables(agents)),
            agent.batch_sizes,
        )
        self._learner = Learner(
            update,
            iter(batches),
            burn_in=table.layout.burn_in,
            priorities=self._priorities,
            counter=self._counter,
            on_metrics=self._metrics.update,
        )
        folder = settings.folder.checkpoints
        if manifest is not None:
            self._learner.read_checkpoint(str(folder / manifest.learner))
            self._counter.increment(trained_steps=manifest.trained_steps)
            self._counts = {name: getattr(manifest, name) for name in self._counts}
        self._batch_spec = batches.element_spec
        self._saver = saver.Saver(
            folder,
            name,
            self._learner.write_checkpoint,
            replays,
            raw_item_bytes(self._batch_spec, agent.batch_size, agent.frame_stack),
            manifest,
            checkpoints.manifest_name(name, settings.paced_by),
            mirrors.of(settings.run_dir),
        )

    def get_variables(self, names: list[str]) -> list[list[np.ndarray]]:
        """The parameters, for actors and evaluators."""
        return self._learner.get_variables(names)

    def run(self) -> None:
        """Learns until the run ends or this learner's own limit is reached, then saves."""
        tear_down = threading.Thread(
            target=self._save_when_torn_down, args=(lp.stop_event(),), daemon=True
        )
        tear_down.start()
        try:
            with heartbeats.while_busy():
                self._learner.warm_up(zeros(self._batch_spec))
            self._learn()
            self._save_last()
            self._priorities.close()
            while not lp.wait_for_stop(0):
                heartbeats.beat()
                self._learner.skip(timeout=REPORT_SECONDS)
        except Exception:
            # After a crash elsewhere the replay may end before this node hears of it.
            if not lp.wait_for_stop(process.GRACE_SECONDS):
                raise
        tear_down.join()

    def _learn(self) -> None:
        limit = self._settings.max_learner_steps
        logger = log_writer.make_logger(self._settings.path, learner_label(self._name))
        save_at, log_at = time.time() + 60 * self._settings.checkpoint_minutes, 0.0
        for _ in self._every(REPORT_SECONDS):
            stop, row = self._report()
            ends = stop or (limit is not None and self._learner.learner_steps >= limit)
            if row and (ends or time.time() >= log_at):
                logger.write(row)
                log_at = time.time() + LOG_SECONDS
            if ends:
                return
            if time.time() >= save_at:
                self._save(with_replay=True)
                save_at = time.time() + 60 * self._settings.checkpoint_minutes

    def _every(self, seconds: float) -> Iterator[None]:
        """Learns, and yields whenever `seconds` have passed or the learner's limit is reached."""
        limit = self._settings.max_learner_steps
        while True:
            until = time.time() + seconds
            while time.time() < until and (limit is None or self._learner.learner_steps < limit):
                heartbeats.beat()
                self._learner.try_step(timeout=max(until - time.time(), 0.01))
            yield

    def _report(self) -> tuple[bool, dict[str, float]]:
        """Tells the coordinator how far it is; returns whether to stop, and a row for the log."""
        step = self._learner.learner_steps
        metrics, of_tasks = split_metrics(self._metrics, self._settings.tasks)
        if self._learner.largest_priority:
            metrics["largest_priority"] = self._learner.largest_priority
        stop = self._coordinator.report_learner(self._name, step, self._trained_steps(), metrics)
        self._counts = counts = self._coordinator.get_counts()
        if not metrics:
            return bool(stop), {}
        row = dict(
            learner_steps=step,
            actor_steps=counts["actor_steps"],
            walltime=counts["walltime"],
            **metrics,
            **of_tasks,
        )
        return bool(stop), row

    @heartbeats.while_busy()
    def _save(self, *, with_replay: bool) -> None:
        with self._saving:
            self._write_checkpoint(with_replay=with_replay)

    def _write_checkpoint(self, *, with_replay: bool) -> None:
        counts = {**self._counts, "trained_steps": self._trained_steps()}
        self._saver.save(self._learner.learner_steps, counts, with_replay=with_replay)

    def _save_last(self) -> None:
        """Saves the learner; the replay too if the time that stopping may take is enough."""
        seconds = self._coordinator.seconds_to_save()
        self._save(with_replay=self._saver.replay_seconds() <= REPLAY_SHARE * seconds)
        self._over.set()
        self._coordinator.report_saved(self._name)

    def _save_when_torn_down(self, stop: threading.Event) -> None:
        """Saves after a crash elsewhere, when `run` may wait for ever for a node that is gone.

        Where `run` has saved this very step, and perhaps waits for the replay still, there is
        nothing to do: a second save of it would be cut short.
        """
        stop.wait()
        if self._over.is_set():
            return
        try:
            if not self._is_saved():
                with self._saving:
                    if not self._is_saved():
                        self._write_checkpoint(with_replay=False)
        except Exception:  # an update was not finite, for one
            traceback.print_exc()
            os._exit(1)
        os._exit(0)

    def _is_saved(self) -> bool:
        """Whether the newest checkpoint is of the parameters as they are."""
        last = self._saver.last
        return last is not None and last.learner_step == self._learner.learner_steps

    def _trained_steps(self) -> int:
        return int(self._counter.get_counts().get("trained_steps", 0))


def zeros(batch_spec: Any) -> Any:
    """A batch in which nothing happened."""
    return tf.nest.map_structure(lambda leaf: tf.zeros(leaf.shape, leaf.dtype), batch_spec)


def raw_item_bytes(batch_spec: Any, batch_size: int, frame_stack: int) -> int:
    """Uncompressed bytes of one item, from the shapes of a batch (whose frames are stacked)."""
    sizes = [
        spec.dtype.size * np.prod([d or batch_size for d in spec.shape])
        for spec in tf.nest.flatten(batch_spec)
    ]
    return int(sum(sizes) / batch_size / frame_stack)


def split_metrics(
    metrics: Mapping[str, tf.Tensor], tasks: Sequence[str]
) -> tuple[dict[str, float], dict[str, float]]:
    """An update's scalars, and what it says of each task: `mu` `[tasks]` as `mu/<task>` each."""
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
