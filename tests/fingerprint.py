"""Prints a digest of what each agent learns from fixed batches: python -m tests.fingerprint

A change that should change no number prints the same lines before and after, on one machine.
"""

import dataclasses
import hashlib
from typing import Any

import numpy as np
import tensorflow as tf

from agents.contract import Update
from run_folder import catalogue
from tests.batches import acts_by_vectors, environment_spec, random_batch, with_actions_of

NUM_UPDATES = 20
SIZE = 16  # steps of a batch
SMALL: dict[str, Any] = dict(
    torso="mlp", hidden_sizes=(8,), frame_stack=1, burn_in=2, length=4, batch_size=4
)


def _update(name: str) -> tuple[Update, Any]:
    """An agent's update with a small network, and its Config."""
    config = catalogue.config(name, "catch")
    own: dict[str, Any] = {"lstm_size": 8 if config.lstm_size else 0}
    if acts_by_vectors(config):
        own |= {"period": 4, "head_hidden_sizes": (8,)}
    elif not hasattr(config, "queue_size"):
        own |= {"period": 4, "head_size": 8, "target_update_period": 3}
    else:
        # As many updates as the paper makes on one game, or on 57.
        own["annealing_frames"] = SIZE * 78_125 * (57 if hasattr(config, "num_tasks") else 1)
    config = dataclasses.replace(config, **SMALL, **own)
    tf.random.set_seed(0)
    spec = with_actions_of(config, environment_spec())
    return catalogue.entry(name).make(config, name).make_update(spec), config


def fingerprint(name: str) -> str:
    """A digest of all variables and metrics of an agent, update by update."""
    update, config = _update(name)
    digest = hashlib.sha256()
    for seed in range(NUM_UPDATES):
        batch = random_batch(config, seed, num_real=[6, 6, 4, 3], terminated=[True, False] * 2)
        _, metrics = update(batch)
        for value in (*update.variables, *(metrics[key] for key in sorted(metrics))):
            digest.update(np.asarray(value).tobytes())
    return digest.hexdigest()


if __name__ == "__main__":
    for agent in catalogue.AGENTS:
        print(f"{agent:20s} {fingerprint(agent)}")
