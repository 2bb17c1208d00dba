"""R2D2's loss and priorities once more, one item and one step at a time."""

from typing import NamedTuple

import numpy as np
import tree

from agents.contract import Network
from r2d2.agent import Config
from r2d2.learner import R2D2Update
from replay.structures import Batch
from tests.batches import NUM_ACTIONS


class Oracle(NamedTuple):
    """The numbers that an update should compute of a batch; padding is NaN."""

    q_taken: np.ndarray  # [L, B]
    targets: np.ndarray  # [L, B]
    loss: float
    priorities: np.ndarray  # [B]


def evaluate(update: R2D2Update, batch: Batch, config: Config) -> Oracle:
    """The oracle's view of a batch, for a config that neither rescales nor transforms rewards."""
    num_steps, size = batch.action.shape
    q_taken, targets = np.full((2, num_steps, size), np.nan)
    for b in range(size):
        online = q_values(update.network, batch, b)
        target = q_values(update.target_network, batch, b)
        real = np.flatnonzero(batch.mask[:, b])
        bootstrap = np.take_along_axis(target, online.argmax(axis=1)[:, None], axis=1)[:, 0]
        discount = config.discount * batch.continuation[:, b].numpy()
        column = bootstrap, batch.reward[:, b].numpy(), discount, batch.mask[:, b].numpy()
        for t in real[real >= config.burn_in]:
            q_taken[t, b] = online[t, batch.action[t, b]]
            targets[t, b] = n_step_return(t, *column, config.n_step)
    q_taken, targets = q_taken[config.burn_in :], targets[config.burn_in :]
    errors = np.abs(targets - q_taken)
    eta = config.eta
    priorities = eta * np.nanmax(errors, axis=0) + (1 - eta) * np.nanmean(errors, axis=0)
    losses = 0.5 * np.nansum(errors**2, axis=0)  # [B]
    return Oracle(q_taken, targets, float((weights(batch, config) * losses).mean()), priorities)


def weights(batch: Batch, config: Config) -> np.ndarray:
    """(N P)^-β over its largest value in the batch, `[B]`."""
    raw = [
        (int(n) * float(p)) ** -config.importance_exponent
        for n, p in zip(batch.table_size.numpy(), batch.probability.numpy(), strict=True)
    ]
    return np.array(raw) / max(raw)


def q_values(network: Network, batch: Batch, b: int) -> np.ndarray:
    """Action values of every row of one item, `[T + 1, A]`, step by step; NaN on invalid rows."""
    state = tree.map_structure(lambda x: x[b : b + 1], batch.core_state)
    values = np.full((batch.reset.shape[0], NUM_ACTIONS), np.nan)
    for t in np.flatnonzero(batch.valid[:, b]):
        if batch.reset[t, b]:
            state = network.initial_state(1)
        row = tree.map_structure(lambda x, t=t: x[t, b : b + 1], batch.inputs)
        q, state = network.step(row, state)
        values[t] = q[0]
    return values


def n_step_return(
    t: int, value: np.ndarray, reward: np.ndarray, discount: np.ndarray, mask: np.ndarray, n: int
) -> float:
    """One item, one row, as the equation reads: up to n steps, then the value of the next row."""
    total, weight = 0.0, 1.0
    for k in range(t, t + n):
        if k == len(mask) or mask[k] == 0:
            return total + weight * value[k]
        total += weight * reward[k]
        weight *= discount[k]
    return total + weight * value[t + n]
