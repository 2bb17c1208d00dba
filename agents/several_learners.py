"""Several learners of one agent learn as one (Espeholt et al. 2018, Section 3).

Each holds all parameters and a part of every batch. Quantities of the whole batch are reduced over
all learners, and each computes the rest alike:

    batch   1 2 3 4 | 5 6 7 8         rank 0 | rank 1
            gradients  -> sum, or mean as the loss is, then clipped
            the rest   -> gathered, in the order of the ranks, which is the batch's

All of them make the same calls in the same order; each call waits for the last one.

An update is written as for one learner, and asks `current()` for quantities of the whole batch. A
call `among` several learners reduces over them; elsewhere they are `ALONE`, which changes nothing.
"""

import contextlib
import contextvars
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
import tensorflow as tf


class Learners:
    """The learners of one agent, as one of them sees them. This class is a single one.

    Attributes:
      rank: of this one; rank 0 reports, saves and answers.
      size: their number.
    """

    rank = 0
    size = 1

    def sum(self, tensors: Sequence[tf.Tensor]) -> list[tf.Tensor]:
        """Each tensor, summed over the learners; its shape is the same for all of them.

        Its derivative is the identity, for this learner's own part.
        """
        return list(tensors)

    def gather(self, tensor: tf.Tensor) -> tf.Tensor:
        """Everybody's `[n, ...]`, one after the other: `[size * n, ...]`; no derivative."""
        return tensor

    def exchange(self, row: np.ndarray) -> np.ndarray:
        """Everybody's `[k]` float64: `[size, k]`."""
        return row[np.newaxis]


ALONE = Learners()


class Together(Learners):
    """Learners in processes of their own, by TensorFlow's collectives.

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
    """Code within it, such as an update that is traced, has these learners."""
    before = _current.set(learners)
    try:
        yield
    finally:
        _current.reset(before)


def current() -> Learners:
    """The learners that the calling code is among."""
    return _current.get()


def gradients_of(
    loss: tf.Tensor, parameters: Sequence[tf.Variable], tape: tf.GradientTape
) -> Sequence[tf.Tensor]:
    """The gradients of a loss; zeros of a parameter that it does not reach, as one's own may be.

    So all learners have the same to sum.
    """
    zero = tf.UnconnectedGradients.ZERO
    found: Sequence[tf.Tensor] = tape.gradient(loss, parameters, unconnected_gradients=zero)
    return found


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
      metrics: of this learner's part of the batch, `[]` each.
      is_sum: whether the metric of a name is a sum over the batch; others are means, which are
        averaged over the parts.
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
    """Sets variables to those of the learner of rank 0."""
    if learners.size == 1:
        return

    @tf.function(autograph=False)
    def assign() -> None:
        own = [v if learners.rank == 0 else tf.zeros_like(v) for v in variables]
        for variable, value in zip(variables, learners.sum(own), strict=True):
            variable.assign(value)

    assign()
