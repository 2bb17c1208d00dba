"""The learners of one agent agree here, so that several are as one (Espeholt et al. 2018, §3).

Each holds all parameters and a part of every batch. What one learner would compute from the whole
batch is reduced over all of them, and the rest each computes alike:

    batch   1 2 3 4 | 5 6 7 8         rank 0 | rank 1
            gradients  -> sum, or mean as the loss is, then clipped
            the rest   -> gathered, in the order of the ranks, which is the batch's

All of them make the same calls in the same order; each call waits for the last one.

An update is written as for one learner, and asks `current()` for what the whole batch says. Who
calls it `among` others has them answer; elsewhere it is `ALONE`, which changes nothing.
"""

import contextlib
import contextvars
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Protocol

import numpy as np
import tensorflow as tf


class Learners(Protocol):
    """The learners of one agent, as one of them sees them.

    Attributes:
      rank: of this one; that of rank 0 reports, saves and answers.
      size: how many there are.
    """

    rank: int
    size: int

    def sum(self, tensors: Sequence[tf.Tensor]) -> list[tf.Tensor]:
        """Each tensor, summed over the learners; its shape is the same for all of them.

        To a derivative it is the identity: that of this learner's own part.
        """
        ...

    def gather(self, tensor: tf.Tensor) -> tf.Tensor:
        """Everybody's `[n, ...]`, one after the other: `[size * n, ...]`; no derivative."""
        ...

    def exchange(self, row: np.ndarray) -> np.ndarray:
        """Everybody's `[k]` float64: `[size, k]`."""
        ...


class Alone:
    """One learner is all there is. Implements `Learners`."""

    rank = 0
    size = 1

    def sum(self, tensors: Sequence[tf.Tensor]) -> list[tf.Tensor]:
        return list(tensors)

    def gather(self, tensor: tf.Tensor) -> tf.Tensor:
        return tensor

    def exchange(self, row: np.ndarray) -> np.ndarray:
        return row[np.newaxis]


ALONE = Alone()


class Together:
    """Learners in processes of their own, by TensorFlow's collectives. Implements `Learners`.

    They go over gRPC, and over NCCL where every learner has a GPU. It is made before this process
    runs its first TensorFlow operation, and waits until all learners are there. When one of them
    ends, the calls of the others raise `tf.errors.UnavailableError`.

    Args:
      addresses: `host:port` of each learner, in the order of their ranks.
      rank: of this one.
    """

    def __init__(self, addresses: Sequence[str], rank: int) -> None:
        self.rank = rank
        self.size = len(addresses)
        resolver = tf.distribute.cluster_resolver.SimpleClusterResolver(
            tf.train.ClusterSpec({"worker": list(addresses)}),
            task_type="worker",
            task_id=rank,
            rpc_layer="grpc",
        )
        self._strategy = tf.distribute.MultiWorkerMirroredStrategy(resolver)

    def sum(self, tensors: Sequence[tf.Tensor]) -> list[tf.Tensor]:
        # A lookup's gradient is slices, and its rows differ between learners.
        parts = [tf.convert_to_tensor(tensor) for tensor in tensors]
        groups: dict[tf.DType, list[int]] = {}
        for index, part in enumerate(parts):
            groups.setdefault(part.dtype, []).append(index)
        for indices in groups.values():
            summed = self._sum_alike([parts[index] for index in indices])
            for index, part in zip(indices, summed, strict=True):
                parts[index] = part
        return parts

    def gather(self, tensor: tf.Tensor) -> tf.Tensor:
        return self._run(lambda context, x: context.all_gather(x, axis=0), tensor)

    def exchange(self, row: np.ndarray) -> np.ndarray:
        rows: np.ndarray = self._exchange(tf.constant(row, tf.float64)[tf.newaxis]).numpy()
        return rows

    @tf.function(autograph=False)
    def _exchange(self, row: tf.Tensor) -> tf.Tensor:
        return self.gather(row)

    def _sum_alike(self, tensors: Sequence[tf.Tensor]) -> list[tf.Tensor]:
        """The sums of tensors of one type, which travel as one buffer."""

        @tf.custom_gradient
        def total(*parts: tf.Tensor) -> tuple[list[tf.Tensor], Callable[..., object]]:
            flat = tf.concat([tf.reshape(part, [-1]) for part in parts], axis=0)
            flat = self._run(lambda context, x: context.all_reduce("SUM", x), flat)
            pieces = tf.split(flat, [part.shape.num_elements() for part in parts])
            shaped = [
                tf.reshape(piece, part.shape) for piece, part in zip(pieces, parts, strict=True)
            ]
            return shaped, lambda *gradients: gradients

        summed: list[tf.Tensor] = total(*tensors)
        return summed

    def _run(
        self,
        function: Callable[[tf.distribute.ReplicaContext, tf.Tensor], tf.Tensor],
        tensor: tf.Tensor,
    ) -> tf.Tensor:
        def in_replica(x: tf.Tensor) -> tf.Tensor:
            x = tf.identity(x)  # collectives want a tensor that has its device
            return function(tf.distribute.get_replica_context(), x)

        return self._strategy.run(in_replica, (tensor,))


_current: contextvars.ContextVar[Learners] = contextvars.ContextVar("_current", default=ALONE)


@contextlib.contextmanager
def among(learners: Learners) -> Iterator[None]:
    """Code in here, an update that is traced above all, has these learners as its own."""
    before = _current.set(learners)
    try:
        yield
    finally:
        _current.reset(before)


def current() -> Learners:
    """The learners that the caller is among."""
    return _current.get()


def mean(tensors: Sequence[tf.Tensor]) -> list[tf.Tensor]:
    """Each tensor, averaged over the learners."""
    learners = current()
    if learners.size == 1:
        return list(tensors)
    return [total / learners.size for total in learners.sum(tensors)]


def whole_metrics(
    metrics: Mapping[str, tf.Tensor], is_sum: Callable[[str], bool]
) -> dict[str, tf.Tensor]:
    """An update's scalars over all learners.

    Args:
      metrics: of this one's part of the batch, `[]` each.
      is_sum: whether one by this name is a sum over the batch; others are means, and those of the
        parts are averaged.
    """
    learners = current()
    if learners.size == 1:
        return dict(metrics)
    (totals,) = learners.sum([tf.stack([tf.cast(x, tf.float32) for x in metrics.values()])])
    return {
        name: total if is_sum(name) else total / learners.size
        for name, total in zip(metrics, tf.unstack(totals), strict=True)
    }


def broadcast(learners: Learners, variables: Sequence[tf.Variable]) -> None:
    """Sets variables to what they are for the learner of rank 0."""
    if learners.size == 1:
        return

    @tf.function(autograph=False)
    def assign() -> None:
        own = [v if learners.rank == 0 else tf.zeros_like(v) for v in variables]
        for variable, value in zip(variables, learners.sum(own), strict=True):
            variable.assign(value)

    assign()
