"""A small config, updates and batches of several tasks for the tests of PopArt."""

from typing import Any

import numpy as np
import tensorflow as tf

from agents.impala.learner import ImpalaUpdate
from agents.popart.agent import Config, make
from agents.popart.statistics import PopArt
from replay.structures import Batch
from tests.agents.impala.batches import ENDS, SMALL, with_ends
from tests.batches import environment_spec, random_batch

NUM_TASKS = 4
ABSENT = 2  # a task that no unroll of TASKS plays
TASKS = np.array([3, 0, 3, 1])


def small_config(**changes: Any) -> Config:
    """A config whose update takes milliseconds, and whose statistics follow within a few."""
    return Config(**{**SMALL, "num_tasks": NUM_TASKS, "statistics_decay": 0.1, **changes})


def make_update(config: Config, seed: int = 0) -> ImpalaUpdate:
    """A new update whose parameters follow from the seed; each task has statistics of its own."""
    tf.random.set_seed(seed)
    update = make(config).make_update(environment_spec())
    assert isinstance(update, ImpalaUpdate)
    if config.normalise:
        statistics = statistics_of(update)
        mu = np.linspace(-1, 2, config.num_tasks)
        statistics.mu.assign(mu)
        statistics.nu.assign(mu**2 + np.linspace(0.5, 3, config.num_tasks) ** 2)
    return update


def statistics_of(update: ImpalaUpdate) -> PopArt:
    """The statistics inside an update."""
    (statistics,) = [m for m in update.submodules if isinstance(m, PopArt)]
    return statistics


def batch_of_tasks(config: Config, seed: int = 0, **options: Any) -> Batch:
    """Unrolls of TASKS, with episode ends."""
    batch = with_ends(random_batch(config, seed, **options), ENDS)
    return batch._replace(task=tf.constant(TASKS))
