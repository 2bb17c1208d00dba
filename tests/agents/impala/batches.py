"""A small config, updates and unrolls with episode ends for the tests of IMPALA."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf
import tree

from agents.impala.agent import Config, make
from agents.impala.distributions import Categorical
from agents.impala.learner import ImpalaUpdate
from agents.impala.vtrace import Outputs, fixed_hyperparameters
from replay.structures import NO_ACTION, Batch, TrainedRows
from tests.agents.impala import oracle
from tests.batches import environment_spec

SMALL: dict[str, Any] = {
    "length": 7,
    "frame_stack": 1,
    "discount": 0.9,
    "batch_size": 4,
    "queue_size": 8,
    "reward_transform": "none",
    "learning_rate": 1e-3,
    "frames_per_step": 1,
    "torso": "mlp",
    "hidden_sizes": (8,),
    "lstm_size": 6,
}


def small_config(**changes: Any) -> Config:
    """A config whose update takes milliseconds, for observations of OBSERVATION_SIZE floats."""
    return Config(**{**SMALL, **changes})


def annealed_in(updates: int, config: Config) -> Config:
    """The config with another horizon."""
    return dataclasses.replace(config, annealing_frames=updates * config.frames_per_update)


def make_update(config: Config, seed: int = 0) -> ImpalaUpdate:
    """A new update, whose parameters follow from the seed."""
    tf.random.set_seed(seed)
    update = make(config).make_update(environment_spec())
    assert isinstance(update, ImpalaUpdate)
    return update


def with_ends(batch: Batch, ends: dict[tuple[int, int], bool]) -> Batch:
    """The batch with episodes that end inside its unrolls.

    Args:
      ends: (row, column) of each `LAST` row -> whether the environment terminated before it.
    """
    fields = (batch.mask, batch.continuation, batch.reset, batch.inputs.previous_action)
    mask, continuation, reset, previous_action = (np.array(x) for x in fields)
    for (row, column), terminated in ends.items():
        mask[row, column] = 0
        continuation[row - 1, column] = 0 if terminated else 1
        reset[row + 1, column] = True
        is_discrete = previous_action.dtype.kind == "i"
        previous_action[row + 1, column] = NO_ACTION if is_discrete else 0
    return batch._replace(
        inputs=batch.inputs._replace(previous_action=tf.constant(previous_action)),
        reset=tf.constant(reset),
        mask=tf.constant(mask),
        continuation=tf.constant(continuation),
    )


ENDS = {(3, 0): True, (3, 1): False, (1, 2): True, (5, 2): False, (6, 3): False}


def outputs_of(update: ImpalaUpdate, batch: Batch, b: int) -> tuple[np.ndarray, np.ndarray]:
    """log π of every action, and every value output, on every row of unroll b, step by step."""
    state = tree.map_structure(lambda x: x[b : b + 1], batch.core_state)
    log_pi, values = [], []
    for t in range(len(batch.reset)):
        if batch.reset[t, b]:
            state = update.learned_network.initial_state(1)
        row = tree.map_structure(lambda x, t=t: x[t, b : b + 1], batch.inputs)
        output, state = update.learned_network.step(row, state)
        log_pi.append(tf.nn.log_softmax(output.policy.logits[0]).numpy())
        values.append(output.value[0].numpy())
    return np.stack(log_pi), np.stack(values)


def gradients_of(update: ImpalaUpdate, batch: Batch) -> list[np.ndarray]:
    """The gradient of a batch's loss, before any clipping."""
    with tf.GradientTape() as tape:
        loss = update.evaluate(batch).loss
    return [g.numpy() for g in tape.gradient(loss, update.learned_network.trainable_variables)]


def oracles_loss(
    update: ImpalaUpdate,
    batch: Batch,
    config: Config,
    shift: Any = 0.0,
    scale: Any = 1.0,
    tasks: Sequence[int] = (0,) * 4,
) -> tuple[float, np.ndarray]:
    """The oracle's loss and unnormalised targets `[L, B]`, NaN where masked.

    Args:
      shift, scale: of each unroll's value, whose output is that of its task.
    """
    pairs = [outputs_of(update, batch, b) for b in range(len(tasks))]
    log_pi = np.stack([x for x, _ in pairs], axis=1)[config.burn_in : -1]
    n = np.stack([x[:, task] for task, (_, x) in zip(tasks, pairs, strict=True)], axis=1)
    outputs = Outputs(Categorical(log_pi), n[config.burn_in :], shift, scale)
    rows = TrainedRows(*(x.numpy() for x in batch.trained(config.burn_in)))
    ratio = np.exp(oracle.log_ratio(outputs, rows))[rows.mask > 0]
    assert (ratio > config.rho_bar).any()
    assert (ratio < config.c_bar).any()
    return oracle.losses(outputs, rows, fixed_hyperparameters(config), config.correction)
