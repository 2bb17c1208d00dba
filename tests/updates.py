"""Parameters before and after an update, and the fields of its config that were read."""

import dataclasses
from typing import Any

import numpy as np

from agents.contract import Update


def parameters_of(update: Update) -> list[np.ndarray]:
    """Copies of the network's parameters."""
    return [v.numpy() for v in update.network.trainable_variables]


def same(xs: list[np.ndarray], ys: list[np.ndarray]) -> bool:
    """Compares arrays bit for bit."""
    return all((x == y).all() for x, y in zip(xs, ys, strict=True))


def watched(config: Any) -> tuple[Any, set[str]]:
    """A copy of a config, and the names that have been read of it since it was made."""
    read: set[str] = set()

    class Watched(type(config)):  # type: ignore[misc]
        def __getattribute__(self, name: str) -> Any:
            read.add(name)
            return super().__getattribute__(name)

    copy = Watched(**dataclasses.asdict(config))
    read.clear()  # what was only checked does not count
    return copy, read
