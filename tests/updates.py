"""Parameters before and after an update."""

import numpy as np

from agents.contract import Update


def parameters_of(update: Update) -> list[np.ndarray]:
    """Copies of the network's parameters."""
    return [v.numpy() for v in update.network.trainable_variables]


def same(xs: list[np.ndarray], ys: list[np.ndarray]) -> bool:
    """Whether all arrays are equal, bit for bit."""
    return all((x == y).all() for x, y in zip(xs, ys, strict=True))
