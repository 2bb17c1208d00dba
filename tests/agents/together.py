"""Several learners of one agent, each in a process, with its part of recorded batches."""

import dataclasses
import functools
import multiprocessing
from collections.abc import Callable
from concurrent import futures
from typing import Any

import numpy as np
import portpicker
import tensorflow as tf
import tree

from agents.contract import Update
from agents.several_learners import ALONE, Learners, Together, among, broadcast
from replay.structures import Batch
from run_folder import catalogue
from tests.batches import acts_by_vectors, environment_spec, random_batch, with_actions_of
from tests.patience import PATIENCE

NUM_UPDATES = 20
BATCH_SIZE = 6  # items, which 2 and 3 learners divide
_PRELOADED = ["tensorflow", "run_folder.catalogue", "run_folder.building", __name__]
CLIP = 0.01  # the gradients' norm, so low that every update is clipped
_ENDS: dict[str, Any] = dict(num_real=[6, 3, 6, 4, 5, 6], terminated=[True, True, False] * 2)
_IMAGE = (32, 32, 1)  # the least that pixel control takes
_SMALL: dict[str, Any] = dict(
    torso="mlp", hidden_sizes=(8,), frame_stack=1, burn_in=2, length=4, batch_size=BATCH_SIZE
)


@dataclasses.dataclass(frozen=True)
class Case:
    """An agent and its inputs, for one learner or several."""

    agent: str
    changes: dict[str, Any] = dataclasses.field(default_factory=dict)
    sees_images: bool = False


@dataclasses.dataclass(frozen=True)
class Learned:
    """The results of one learner."""

    variables: list[np.ndarray]
    priorities: list[np.ndarray]  # of each update, [its part]; none where the agent has none
    metrics: list[dict[str, np.ndarray]]  # of each update


def make_update(case: Case, rank: int) -> tuple[Update, Any]:
    """The update of a small agent, whose first parameters follow from its rank; and its Config."""
    config = catalogue.config(case.agent, "catch")
    own: dict[str, Any] = {"lstm_size": 8 if config.lstm_size else 0}
    if acts_by_vectors(config):
        own |= {"period": 4, "head_hidden_sizes": (8,)}
    elif not hasattr(config, "queue_size"):
        own |= {"period": 4, "head_size": 8, "target_update_period": 3}
    if hasattr(config, "num_tasks"):
        own |= {"num_tasks": 3, "statistics_decay": 0.1}
    config = dataclasses.replace(config, **_SMALL | own | case.changes, max_gradient_norm=CLIP)
    tf.random.set_seed(rank)
    agent = catalogue.entry(case.agent).make(config, case.agent)
    spec = environment_spec(_IMAGE, np.uint8) if case.sees_images else environment_spec()
    return agent.make_update(with_actions_of(config, spec)), config


def batch_of(case: Case, config: Any, seed: int) -> Batch:
    """A whole batch, whose items end differently."""
    batch = random_batch(config, seed, **_ENDS)
    rng = np.random.default_rng(seed)
    if case.sees_images:
        shape = (*batch.reset.shape, *_IMAGE)
        images = tf.constant(rng.integers(256, size=shape), tf.uint8)
        batch = batch._replace(inputs=batch.inputs._replace(observation=images))
    return batch._replace(
        task=tf.constant(rng.integers(getattr(config, "num_tasks", 1), size=BATCH_SIZE)),
        probability=tf.constant(rng.dirichlet(np.full(BATCH_SIZE, 0.3)) + 1e-6),
    )


def part_of(batch: Batch, rank: int, size: int) -> Batch:
    """The items of one of several learners, whose shards hold unequal parts of each table."""
    begin, end = (BATCH_SIZE * r // size for r in (rank, rank + 1))
    by_row = Batch._fields[: Batch._fields.index("core_state")]  # [T, B, ...]

    def cut(name: str, x: tf.Tensor) -> tf.Tensor:
        return x[:, begin:end] if name in by_row else x[begin:end]

    parts = {
        name: tree.map_structure(functools.partial(cut, name), getattr(batch, name))
        for name in Batch._fields
    }
    # Of the 100 items that the table holds; they come and go while a batch is sampled.
    sizes = [10 + 20 * np.arange(end - begin), *[np.full(end - begin, 15)] * (size - 2)]
    sizes.append(np.subtract(100, sum(sizes)))
    return Batch(**parts | {"table_size": tf.constant(sizes[rank], tf.int64)})


def learn(case: Case, learners: Learners) -> Learned:
    """Makes twenty updates, of this learner's part of the recorded batches."""
    update, config = make_update(case, learners.rank)
    broadcast(learners, update.variables)
    priorities, metrics = [], []
    for seed in range(NUM_UPDATES):
        batch = batch_of(case, config, seed)
        mine = batch if learners.size == 1 else part_of(batch, learners.rank, learners.size)
        with among(learners):
            found, said = update(mine)
        priorities += [] if found is None else [found.numpy()]
        metrics.append({name: x.numpy() for name, x in said.items()})
    return Learned([v.numpy() for v in update.variables], priorities, metrics)


_learners: Learners = ALONE  # of this process


def _join(addresses: list[str], rank: int) -> None:
    global _learners
    _learners = Together(addresses, rank)


def _rank(learners: Learners) -> int:
    return learners.rank


def _call(function: Callable[..., Any], *arguments: Any) -> Any:
    return function(*arguments, _learners)


class Group:
    """Processes with a learner each; each does one thing at a time. A context manager.

    Args:
      size: how many.
    """

    def __init__(self, size: int) -> None:
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(_PRELOADED)  # TensorFlow is imported once
        addresses = [f"localhost:{portpicker.pick_unused_port()}" for _ in range(size)]
        self._processes = [
            futures.ProcessPoolExecutor(1, context, _join, (addresses, rank))
            for rank in range(size)
        ]
        self.call(_rank)  # all of them are there

    def __enter__(self) -> "Group":
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._processes:
            process.shutdown(wait=False, cancel_futures=True)

    def begin(self, function: Callable[..., Any], *arguments: Any) -> list[futures.Future[Any]]:
        """Has each of them call a function, whose last argument are the learners."""
        call = functools.partial(_call, function, *arguments)
        return [process.submit(call) for process in self._processes]

    def call(self, function: Callable[..., Any], *arguments: Any) -> list[Any]:
        """Returns the function's result in each process, in the order of the ranks."""
        return [future.result(timeout=PATIENCE) for future in self.begin(function, *arguments)]
