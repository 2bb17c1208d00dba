"""The loop around an update: batch -> update -> priorities, counts, metrics.

`Parameters` serves others, in any thread: the newest parameters, and checkpoints. `Learner` makes
the updates.
"""

import collections
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import acme
import numpy as np
import tensorflow as tf
from acme.utils import counting

from agents.batches import Batches, Ready
from agents.contract import Update
from agents.finite import NotFiniteError, check_update
from agents.several_learners import ALONE, Learners, among, broadcast
from replay.structures import Batch
from tensor_ops import xla

# Reading an update's metrics waits for an accelerator to finish it, which then idles. So where
# nothing else needs its results, so many updates' metrics are read together.
MAX_UNCHECKED = 10


class PriorityWriter(Protocol):
    """The part of `replay.priority_updater.PriorityUpdater` that a learner needs."""

    def update(self, shard: np.ndarray, key: np.ndarray, priority: np.ndarray) -> None: ...


class BrokenOffError(RuntimeError):
    """An update was not made as a whole."""


class Parameters:
    """An update's variables, served whole, finite, and as they are between two updates.

    After an update that was not finite, or broke off, its parameters are neither saved nor handed
    out: callers are given those that were served before.

    Args:
      update: the one that has the variables.
      on_replaced: called when other parameters have replaced the learned ones.
    """

    def __init__(self, update: Update, on_replaced: Callable[[], None]) -> None:
        self._update = update
        self._on_replaced = on_replaced
        with tf.device("CPU"):  # an accelerator would first have to finish the update
            self._steps = tf.Variable(0, dtype=tf.int64, trainable=False)
        self._checkpoint = tf.train.Checkpoint(update=update, steps=self._steps)
        self._lock = threading.Lock()  # held while they change
        self._served: tuple[int, list[np.ndarray]] | None = None
        # The newest updates' metrics, and the rewards that they learned from.
        self._unchecked: list[tuple[Mapping[str, tf.Tensor], tf.Tensor]] = []
        self._broke_off = False  # an update, which may have changed some parameters and not others

    @property
    def learner_steps(self) -> int:
        """Updates made so far, those before a restore included."""
        return int(self._steps)

    def get_variables(self, names: Sequence[str]) -> list[list[np.ndarray]]:
        """For each name (there is one, "policy") the network's variables, then their learner step.

        While an update is made those that were fetched before it are handed out again.

        Raises:
          ValueError: for another name.
          NotFiniteError, BrokenOffError: of an update, where nothing was served before.
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
          NotFiniteError, BrokenOffError: of an update.
        """
        with self._lock:
            self._check()
            return self._values()

    def restore(self, state: Any) -> None:
        """Undoes everything since the `save` that gave `state`."""
        with self._lock:
            self._assign(state)
            self._forget()
        self._on_replaced()

    def write_checkpoint(self, prefix: str) -> str:
        """Writes all that learning depends on to files that begin with `prefix`; returns that.

        Raises:
          NotFiniteError, BrokenOffError: of an update; nothing is written.
        """
        with self._lock:
            self._check()
            return self._checkpoint.write(prefix)

    def read_checkpoint(self, prefix: str, learner_steps: int | None = None) -> None:
        """Goes on from what `write_checkpoint` wrote.

        Args:
          prefix: of the files.
          learner_steps: the updates to count from; by default those in the checkpoint.

        Raises:
          tf.errors.OpError, ValueError, AssertionError: when the files are missing, corrupt, or
            another agent's.
        """
        with self._lock:
            self._checkpoint.read(prefix).assert_consumed()
            if learner_steps is not None:
                self._steps.assign(learner_steps)
                if (count_from := getattr(self._update, "count_from", None)) is not None:
                    count_from(learner_steps)
                elif (step := getattr(self._update, "step", None)) is not None:
                    step.assign(learner_steps)  # by which the lag of what actors played is counted
            self._forget()
        self._on_replaced()

    def _newest(self) -> list[np.ndarray] | None:
        """The parameters last served, unless an update was made since."""
        served = self._served
        return served[1] if served is not None and served[0] == self.learner_steps else None

    def _copy(self) -> list[np.ndarray]:
        try:
            self._check()
        except (NotFiniteError, BrokenOffError):
            # `step` is to raise it: an actor that did so first would be taken for the culprit.
            if self._served is None:
                raise
            return self._served[1]
        steps = self.learner_steps
        values = [v.numpy() for v in self._update.network.variables]
        self._served = steps, [*values, np.asarray(steps, np.int64)]
        return self._served[1]

    def _check(self, but: int = 0) -> None:
        """Raises if an update was not finite or broke off, at this call and at all later ones.

        Args:
          but: so many of the newest, which an accelerator may still work on.
        """
        if self._broke_off:
            raise BrokenOffError(f"Update {self.learner_steps + 1} broke off.")
        first = self.learner_steps - len(self._unchecked) + 1
        checked = self._unchecked[: max(0, len(self._unchecked) - but)]
        for step, (metrics, reward) in enumerate(checked, first):
            check_update(step, metrics, reward)
        del self._unchecked[: len(checked)]

    def _forget(self) -> None:
        """Drops all that was known of parameters that have been replaced."""
        self._served = None
        self._unchecked.clear()
        self._broke_off = False

    def _values(self) -> dict[str, np.ndarray]:
        return {name: variable.numpy() for name, variable in self._variables().items()}

    def _assign(self, values: Mapping[str, np.ndarray]) -> None:
        for name, variable in self._variables().items():
            variable.assign(values[name])

    def _variables(self) -> dict[str, tf.Variable]:
        variables = [*self._update.variables, self._steps]
        return {variable.name + str(i): variable for i, variable in enumerate(variables)}


class Learner(Parameters, acme.Learner):
    """Takes batches and improves the parameters.

    An update with a loss or a gradient's norm that is not finite ends the learner: its priorities
    are not written, and `step` raises the error, then or a few updates later.

    Of several learners all learn, or none does: in every `try_step` each tells the others whether
    it has a batch. They begin with the parameters of rank 0 (`share`) and end together (`end`).

    Args:
      update: the learner step.
      batches: those to learn from; of several learners, this one's part of each.
      priorities: takes the items' new priorities; None where the agent has none.
      burn_in: rows of a batch that are not learned from.
      counter: counts `steps`, and in `trained_steps` the steps that were replayed, by all learners.
      on_metrics: takes the metrics of each step, as tensors.
      on_replaced: as for `Parameters`.
      learners: all learners of the agent, as this one sees them.

    Attributes:
      largest_priority: the largest that any learner's update gave an item; 0 before the first.
      has_ended: whether all learners have ended; none of them makes another update.
      waiting: seconds that learners have waited for each other so far, on average.
    """

    def __init__(
        self,
        update: Update,
        batches: Batches,
        *,
        burn_in: int = 0,
        priorities: PriorityWriter | None = None,
        counter: counting.Counter | None = None,
        on_metrics: Callable[[Mapping[str, tf.Tensor]], None] = lambda metrics: None,
        on_replaced: Callable[[], None] = lambda: None,
        learners: Learners = ALONE,
    ) -> None:
        super().__init__(update, on_replaced)
        self._priorities = priorities
        self._burn_in = burn_in
        self._counter = counter or counting.Counter()
        self._on_metrics = on_metrics
        self._learners = learners
        self._batch: Ready | None = None  # to be learned from, once all have one
        # Priorities are read while the accelerator makes the update after theirs.
        self._behind = 1 if xla.has_gpu() else 0
        self._unwritten: collections.deque[tuple[Batch, tf.Tensor]] = collections.deque()
        self._waited = 0.0  # seconds, in the last round
        self.largest_priority = 0.0
        self.has_ended = False
        self.waiting = 0.0
        self._batches = batches

    def warm_up(self, batch: Batch) -> None:
        """Makes one update and undoes it, so that the first real one takes no longer than others.

        TensorFlow builds and optimises an update's graph when it is first called: seconds in which
        replay may as well fill. The parameters can be fetched meanwhile.

        Args:
          batch: of the types and shapes of all batches, with any contents.
        """
        self.get_variables(["policy"])
        with self._lock, among(self._learners):
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
        if self.has_ended:
            return False
        ready = self._batch = self._batch or self._batches.next(timeout)
        trained_steps = self._agreed(ready)
        if ready is None or trained_steps is None:
            self._settle()
            return False
        self._batch = None
        with self._lock, among(self._learners):
            self._broke_off = True
            priorities, metrics = self._update(ready.placed)
            self._steps.assign_add(1)
            self._broke_off = False
            self._unchecked.append((metrics, ready.batch.reward))
            if priorities is not None or len(self._unchecked) >= MAX_UNCHECKED:
                self._check(but=self._behind)
        if self._priorities is not None and priorities is not None:
            self._unwritten.append((ready.batch, priorities))
            self._write(self._priorities, but=self._behind)
        self._counter.increment(steps=1, trained_steps=trained_steps)
        self._on_metrics(metrics)
        return True

    def share(self) -> None:
        """Gives all learners the parameters of rank 0, and all else that a checkpoint holds."""
        with self._lock:
            broadcast(self._learners, [*self._update.variables, self._steps])
            self._forget()

    def end(self) -> None:
        """Has all learners end after the same update; waits until they know."""
        if not self.has_ended:
            self._agreed(self._batch, ends=True)
        self._settle()

    def skip(self, timeout: float) -> bool:
        """Takes a batch and learns nothing: a finished learner must block no one."""
        return self._batches.next(timeout) is not None

    def close(self) -> None:
        """Lets go of what fetches batches: a thread ends when it has its next, or the last."""
        self._batches.close()

    def _settle(self) -> None:
        """Writes the priorities that no update came after."""
        if self._unwritten and self._priorities is not None:
            with self._lock:
                self._check()
            self._write(self._priorities)

    def _write(self, priorities: PriorityWriter, but: int = 0) -> None:
        """Hands over what updates that were found finite gave, but for so many of the newest."""
        while len(self._unwritten) > but:
            batch, given = self._unwritten.popleft()
            values = given.numpy()
            priorities.update(batch.shard.numpy(), batch.key.numpy(), values)
            self.largest_priority = max(self.largest_priority, float(values.max()))

    def _forget(self) -> None:
        super()._forget()
        self._unwritten.clear()

    def _agreed(self, ready: Ready | None, *, ends: bool = False) -> int | None:
        """Takes part in the learners' next round.

        Args:
          ready: the batch that this learner could learn from now.
          ends: whether it wants all to end.

        Returns:
          The steps that all of them replay now; None where they make no update.
        """
        steps = 0.0 if ready is None else ready.batch.mask[self._burn_in :].numpy().sum()
        began = time.monotonic()
        said = self._learners.exchange(
            np.array([ready is not None, ends, steps, self.largest_priority, self._waited])
        )
        self._waited = time.monotonic() - began
        are_ready, end, all_steps, priorities, waited = said.T
        self.has_ended = bool(end.any())
        self.largest_priority = float(priorities.max())
        self.waiting += float(waited.mean())
        return int(all_steps.sum()) if are_ready.all() and not self.has_ended else None


def write_parameters(update: Update, prefix: str, learner_steps: int) -> None:
    """Writes an update's variables as a `Learner` that has made so many updates writes them."""
    _checkpoint(update, learner_steps).write(prefix)


def read_parameters(update: Update, prefix: str) -> None:
    """Sets the variables of an update from a checkpoint that a `Learner` wrote.

    Raises:
      tf.errors.OpError, AssertionError: when the files are missing, corrupt, or another agent's.
    """
    _checkpoint(update, learner_steps=0).read(prefix).assert_consumed()


def _checkpoint(update: Update, learner_steps: int) -> tf.train.Checkpoint:
    """An update that no `Learner` has, as one would save it."""
    steps = tf.Variable(learner_steps, dtype=tf.int64, trainable=False)
    return tf.train.Checkpoint(update=update, steps=steps)
