"""A learner so simple that its state is known: its weight is the sum of all rewards."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import sonnet as snt
import tensorflow as tf

from agents.batches import Fetched
from agents.learner import Learner
from replay.structures import Batch

BURN_IN = 1


class Network(snt.Module):
    """One weight."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = tf.Variable([0.0, 0.0], name="weight")


class AddReward(tf.Module):
    """An update that adds the batch's rewards to the weight, and has a moment like an optimizer."""

    def __init__(self) -> None:
        super().__init__(name="add_reward")
        self.network = Network()
        self.moment = tf.Variable(0.0, name="moment")

    @tf.function
    def __call__(self, batch: Batch) -> tuple[tf.Tensor | None, Mapping[str, tf.Tensor]]:
        self.network.weight.assign_add(tf.repeat(tf.reduce_sum(batch.reward), 2))
        self.moment.assign_add(1.0)
        total = tf.reduce_sum(batch.reward)
        return tf.reduce_sum(batch.reward, axis=0), {
            "loss": total,
            "gradient_norm": tf.abs(total),
            "weight": self.network.weight[0],
        }


class Priorities:
    """Takes priorities as `replay.priority_updater.PriorityUpdater` does."""

    def __init__(self) -> None:
        self.updates: list[tuple[list[int], list[int], list[float]]] = []

    def update(self, shard: np.ndarray, key: np.ndarray, priority: np.ndarray) -> None:
        self.updates.append((shard.tolist(), key.tolist(), priority.tolist()))


def batch_of(reward: float) -> Batch:
    """Two items of three rows; the second is padded by one row on either side."""
    fields: dict[str, Any] = dict.fromkeys(Batch._fields, ())
    fields["reward"] = tf.constant([[0.0, 0.0], [reward, 0.0], [0.0, 2 * reward]])
    fields["mask"] = tf.constant([[1.0, 0.0], [1.0, 1.0], [1.0, 0.0]])
    fields["key"] = tf.constant([7, 2**63 + 1], tf.uint64)
    fields["shard"] = tf.constant([1, 0])
    return Batch(**fields)


def make_learner(
    batches: Iterable[Batch], update: Any = None, **changes: Any
) -> tuple[Learner, AddReward]:
    """A learner of these batches, and its update."""
    update = update or AddReward()
    return Learner(update, Fetched(iter(batches)), burn_in=BURN_IN, **changes), update


def for_ever() -> Iterator[Batch]:
    """The same batch again and again."""
    while True:
        yield batch_of(1.0)
