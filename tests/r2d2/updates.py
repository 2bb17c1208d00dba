"""Updates on small networks, and their parameters, for the tests of R2D2's learner."""

from typing import Any

import numpy as np
import tensorflow as tf

from r2d2.agent import Config, make
from r2d2.learner import R2D2Update
from replay.structures import Batch
from tests.batches import environment_spec
from tests.updates import parameters_of


def make_update(config: Config, *, perturbed: bool = False, seed: int = 0) -> R2D2Update:
    """A new update, whose parameters follow from the seed.

    Args:
      perturbed: whether its target network differs from the online one.
    """
    tf.random.set_seed(seed)
    update = make(config).make_update(environment_spec())
    assert isinstance(update, R2D2Update)
    if perturbed:
        for variable in update.target_network.trainable_variables:
            variable.assign_add(0.3 * tf.random.normal(variable.shape))
    return update


def after_one_update(config: Config, batch: Batch) -> tuple[list[np.ndarray], np.ndarray, Any]:
    """A new update's parameters after a batch, the batch's new priorities, and the metrics."""
    update = make_update(config)
    priorities, metrics = update(batch)
    return parameters_of(update), priorities.numpy(), metrics
