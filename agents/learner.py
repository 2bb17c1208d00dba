"""The loop around an update: batch -> update -> priorities, counts, metrics; and its checkpoint."""

import queue
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol

import acme
import numpy as np
import tensorflow as tf
from acme.utils import counting

from agents.contract import Update
from agents.finite import NotFiniteError, check_update
from replay.structures import Batch

# Reading an update's metrics waits for an accelerator to finish it, and then it idles. So where
# nothing else needs its results, those of so many updates are read together.
MAX_UNCHECKED = 10


class PriorityWriter(Protocol):
    """What a learner needs of `replay.priorities.PriorityUpdater`."""

    def update(self, shard: np.ndarray, key: np.ndarray, priority: np.ndarray) -> None: ...


class Learner(acme.Learner):
    """Takes batches, improves the parameters, hands them out.

    Batches are fetched by a thread, so that a learner that waits for replay can still be stopped.
    Other threads may call `get_variables` and `save` at any time: they see the parameters between
    two updates. Parameters that were fetched before are handed out again while an update is made.

    An update whose loss or gradient's norm is not finite ends the learner: its priorities are not
    written, its parameters neither saved nor handed out, and `step` says so, then or a few updates
    later. Whoever asks for parameters is given those that were served before.

    Args:
      update: the learner step.
      batches: endless.
      priorities: takes the items' new priorities; None where the agent has none.
      burn_in: rows of a batch that nothing is learned from.
      counter: counts `steps`, and in `trained_steps` the steps that were replayed.
      on_metrics: takes the metrics of each step, as tensors.

    Attributes:
      largest_priority: that the update ever gave an item; 0 before the first.
    """

    def __init__(
        self,
        update: Update,
        batches: Iterator[Batch],
        *,
        burn_in: int = 0,
        priorities: PriorityWriter | None = None,
        counter: counting.Counter | None = None,
        on_metrics: Callable[[Mapping[str, tf.Tensor]], None] = lambda metrics: None,
    ) -> None:
        self._update = update
        self._priorities = priorities
        self._burn_in = burn_in
        self._counter = counter or counting.Counter()
        self._on_metrics = on_metrics
        self.largest_priority = 0.0
        self._steps = tf.Variable(0, dtype=tf.int64, trainable=False)
        self._checkpoint = tf.train.Checkpoint(update=update, steps=self._steps)
        self._lock = threading.Lock()
        self._served: tuple[int, list[np.ndarray]] | None = None
        self._unchecked: list[Mapping[str, tf.Tensor]] = []  # metrics of the newest updates
        self._batches: queue.Queue[Batch | BaseException] = queue.Queue(maxsize=1)
        threading.Thread(target=self._fetch, args=(batches,), daemon=True).start()

    @property
    def learner_steps(self) -> int:
        """Updates made so far, those before a restore included."""
        return int(self._steps)

    def warm_up(self, batch: Batch) -> None:
        """Makes one update and undoes it, so that the first real one lasts no longer than the next.

        TensorFlow builds and optimises an update's graph when it is first called: seconds in which
        replay may as well fill. The parameters can be fetched meanwhile.

        Args:
          batch: of the types and shapes of all batches; what is in it does not matter.
        """
        self.get_variables(["policy"])
        with self._lock:
            before = self._values()
            self._update(batch)
            self._assign(before)

    def step(self) -> None:
        """Waits for a batch and learns from it, as `try_step`."""
        while not self.try_step(timeout=60.0):
            pass

    def try_step(self, timeout: float) -> bool:
        """Learns from one batch if one arrives within `timeout` seconds; says whether it did.

        Raises:
          NotFiniteError: when this update is not, or one of the last few.
        """
        batch = self._next_batch(timeout)
        if batch is None:
            return False
        with self._lock:
            priorities, metrics = self._update(batch)
            self._steps.assign_add(1)
            self._unchecked.append(metrics)
            if priorities is not None or len(self._unchecked) >= MAX_UNCHECKED:
                self._check()
        if self._priorities is not None and priorities is not None:
            self._priorities.update(batch.shard.numpy(), batch.key.numpy(), priorities.numpy())
            self.largest_priority = max(self.largest_priority, float(tf.reduce_max(priorities)))
        trained_steps = int(batch.mask[self._burn_in :].numpy().sum())
        self._counter.increment(steps=1, trained_steps=trained_steps)
        self._on_metrics(metrics)
        return True

    def skip(self, timeout: float) -> bool:
        """Takes a batch and learns nothing: a finished learner must block no one."""
        return self._next_batch(timeout) is not None

    def get_variables(self, names: Sequence[str]) -> list[list[np.ndarray]]:
        """For each name (there is one, "policy") the network's variables, then their learner step.

        Raises:
          ValueError: for another name.
          NotFiniteError: when an update is not, and nothing was served before.
        """
        for name in names:
            if name != "policy":
                raise ValueError(f'A learner serves the variables "policy", not {name!r}.')
        newest = self._newest()
        if newest is None:
            with self._lock:
                newest = self._newest() or self._copy()
        return [newest] * len(names)

    def save(self) -> Any:
        """Every variable by name, as numpy arrays: parameters, target, optimizer, counts.

        Raises:
          NotFiniteError: when an update was not.
        """
        with self._lock:
            self._check()
            return self._values()

    def restore(self, state: Any) -> None:
        """Undoes everything since the `save` that gave `state`."""
        with self._lock:
            self._assign(state)
            self._forget()

    def write_checkpoint(self, prefix: str) -> str:
        """Writes all that learning depends on to files that begin with `prefix`; returns that.

        Raises:
          NotFiniteError: when an update was not; nothing is written.
        """
        with self._lock:
            self._check()
            return self._checkpoint.write(prefix)

    def read_checkpoint(self, prefix: str) -> None:
        """Goes on from what `write_checkpoint` wrote.

        Raises:
          tf.errors.OpError, ValueError, AssertionError: when the files are missing, corrupt, or
            another agent's.
        """
        with self._lock:
            self._checkpoint.read(prefix).assert_consumed()
            self._forget()

    def _next_batch(self, timeout: float) -> Batch | None:
        try:
            batch = self._batches.get(timeout=timeout)
        except queue.Empty:
            return None
        if isinstance(batch, BaseException):
            self._batches.put(batch)  # for whoever asks again: nothing else will come
            raise RuntimeError("The learner's stream of batches broke off.") from batch
        return batch

    def _newest(self) -> list[np.ndarray] | None:
        """What `get_variables` last served, unless an update was made since."""
        served = self._served
        return served[1] if served is not None and served[0] == self.learner_steps else None

    def _copy(self) -> list[np.ndarray]:
        try:
            self._check()
        except NotFiniteError:
            # It is for `step` to raise: an actor that heard of it first would pass for the culprit.
            if self._served is None:
                raise
            return self._served[1]
        steps = self.learner_steps
        values = [v.numpy() for v in self._update.network.variables]
        self._served = steps, [*values, np.asarray(steps, np.int64)]
        return self._served[1]

    def _check(self) -> None:
        """Raises if an update was not finite, and again whenever it is asked later."""
        first = self.learner_steps - len(self._unchecked) + 1
        for step, metrics in enumerate(self._unchecked, first):
            check_update(step, metrics)
        self._unchecked.clear()

    def _forget(self) -> None:
        """What was known of the parameters says nothing of those that took their place."""
        self._served = None
        self._unchecked.clear()

    def _values(self) -> dict[str, np.ndarray]:
        return {name: variable.numpy() for name, variable in self._variables().items()}

    def _assign(self, values: Mapping[str, np.ndarray]) -> None:
        for name, variable in self._variables().items():
            variable.assign(values[name])

    def _variables(self) -> dict[str, tf.Variable]:
        variables = [*self._update.variables, self._steps]
        return {variable.name + str(i): variable for i, variable in enumerate(variables)}

    def _fetch(self, batches: Iterator[Batch]) -> None:
        try:
            for batch in batches:
                self._batches.put(batch)
            self._batches.put(EOFError("The stream of batches ended."))
        except Exception as error:  # it is raised where the batch was wanted
            self._batches.put(error)


def read_parameters(update: Update, prefix: str) -> None:
    """Sets the variables of an update to those of a checkpoint that a `Learner` wrote.

    Raises:
      tf.errors.OpError, AssertionError: when the files are missing, corrupt, or another agent's.
    """
    status = tf.train.Checkpoint(update=update).read(prefix)
    status.assert_existing_objects_matched().expect_partial()
