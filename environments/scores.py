"""Published scores, and returns in units of human play.

`data/atari57.csv` holds the customary human and random scores, and five agents' scores as
Kapturowski et al. 2019 (R2D2) report them. In `data/dmlab30.csv` the human and random scores and
the columns with a year are from Espeholt et al. 2018 (IMPALA), the others from Kapturowski et al.

The random score of Video Pinball is 0 here, because the means that both papers report come out with
0 alone. The customary one, 16,256.9, is so close to the human 17,667.9 that this one game would be
a fifth of R2D2's mean over 57.
"""

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np


def _read(file: str) -> dict[str, dict[str, float]]:
    """Reads a table: an environment's name leads to its row."""
    with (Path(__file__).parent / file).open(newline="") as lines:
        return {
            row.pop("environment"): {column: float(score) for column, score in row.items()}
            for row in csv.DictReader(lines)
        }


_ATARI57 = _read("data/atari57.csv")
_DMLAB30 = _read("data/dmlab30.csv")

ATARI57 = tuple(_ATARI57)
"""The names of the 57 games."""

DMLAB30 = tuple(_DMLAB30)
"""The names of the 30 levels as they are evaluated; two have another name in training."""

HELD_OUT = {
    f"{name.removesuffix('_test')}_train": name for name in DMLAB30 if name.endswith("_test")
}
"""From the level that is trained on to the one that is evaluated, where these are not the same."""

_IN_TRAINING = {held_out: name for name, held_out in HELD_OUT.items()}

DMLAB30_TRAINING = tuple(_IN_TRAINING.get(name, name) for name in DMLAB30)
"""The names of the 30 levels as they are trained on."""

DMLAB30_LEVELS = {name.removeprefix("dmlab:") for name in (*DMLAB30, *DMLAB30_TRAINING)}
"""The levels of either list, by the engine's name of them."""

SCORES = {**_ATARI57, **_DMLAB30}
"""From an environment's name to its scores: `random`, `human`, and each published agent's."""


def human_normalised(name: str, score: float) -> float | None:
    """The score as a fraction of the way from random to human play.

    (score - random) / (human - random): 0 is random play, 1 a human, and both may be exceeded.

    Args:
      name: an environment's name, for example `atari:pong`; the training level of a pair has
        the scores of the held-out one.
      score: a mean undiscounted, unclipped return.

    Returns:
      None where no human score is known.
    """
    name = HELD_OUT.get(name, name)
    if name not in SCORES:
        return None
    random, human = SCORES[name]["random"], SCORES[name]["human"]
    return (score - random) / (human - random)


class Aggregate(NamedTuple):
    """Human-normalised scores over the tasks of a suite; 1 is a human's."""

    median: float
    mean: float
    mean_capped: float
    """The mean of min(1, score): no task makes up for another (Espeholt et al. 2018, App. B)."""


def aggregate(normalised: Sequence[float]) -> Aggregate:
    """Sums up a suite.

    Args:
      normalised: one `human_normalised` score for each task; a nan makes everything nan.

    Raises:
      ValueError: there are none.
    """
    if not len(normalised):
        raise ValueError("The normalised score of at least one task is needed, got none.")
    return Aggregate(
        median=float(np.median(normalised)),
        mean=float(np.mean(normalised)),
        mean_capped=float(np.minimum(normalised, 1).mean()),
    )
