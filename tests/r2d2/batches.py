"""A small config for the tests of R2D2, items for its batches, and updates on small networks."""

from typing import Any

import numpy as np
import tensorflow as tf

from r2d2.agent import Config, make
from r2d2.learner import R2D2Update
from replay.structures import Batch
from tests.batches import environment_spec
from tests.updates import parameters_of

# For `random_batch` of a small config: three trained steps and a terminal; an episode's start; a
# single trained step; a whole item.
ITEMS: dict[str, Any] = {
    "num_real": [6, 6, 4, 9],
    "padding": [0, 3, 0, 0],
    "terminated": [True, False, True, False],
}


def small_config(**changes: Any) -> Config:
    """A config whose update takes milliseconds, for observations of OBSERVATION_SIZE floats."""
    values: dict[str, Any] = {
        "burn_in": 3,
        "length": 6,
        "period": 3,
        "frame_stack": 1,
        "n_step": 3,
        "discount": 0.9,
        "batch_size": 4,
        "learning_rate": 1e-2,
        "target_update_period": 3,
        "torso": "mlp",
        "hidden_sizes": (8,),
        "lstm_size": 6,
        "head_size": 7,
    }
    return Config(**{**values, **changes})


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
