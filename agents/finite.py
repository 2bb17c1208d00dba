"""Rewards, losses and gradients must be finite: one NaN is soon in all parameters and saved."""

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import tensorflow as tf

MUST_BE_FINITE = ("loss", "gradient_norm")  # clipping to an infinite norm writes NaN
"""Every update has these metrics; others with names that end so must be finite too."""


class NotFiniteError(ArithmeticError):
    """A reward, a loss or a gradient's norm is infinite or not a number."""


def check_rewards(reward: np.ndarray, names: Sequence[str]) -> None:
    """Accepts the rewards of one step.

    Args:
      reward: `[N]`.
      names: `[N]`, of the environments that gave them.

    Raises:
      NotFiniteError: a reward is not finite in float32; it names the first such environment.
    """
    with np.errstate(over="ignore"):
        finite = np.isfinite(np.asarray(reward, np.float32))  # as a row holds it
    if not finite.all():
        i, n = int(np.argmin(finite)), len(names)
        which = f", environment {i + 1} of {n}," if n > 1 else ""
        held = " (infinite in float32)" if np.isfinite(reward[i]) else ""
        given = f"{reward[i]}{held}"
        raise NotFiniteError(f"{names[i]}{which} gave the reward {given}: rewards must be finite.")


def check_update(step: int, metrics: "Mapping[str, tf.Tensor]", reward: "tf.Tensor") -> None:
    """Accepts an update with finite losses and norms of gradients.

    Other metrics need not be finite, such as that of a task which a batch lacks.

    Args:
      step: the update's number, from 1 on.
      metrics: that it gave.
      reward: `[T, B]`, of its batch.

    Raises:
      KeyError: if there is no `loss` or no `gradient_norm`.
      NotFiniteError: it tells every metric that is not finite, to show the term where it began,
        and the rewards, which may be too large for the loss.
    """
    names = {*MUST_BE_FINITE, *(name for name in metrics if name.endswith(MUST_BE_FINITE))}
    if all(math.isfinite(metrics[name]) for name in names):
        return
    found = [
        f"{name}{list(index) or ''} {value}"
        for name, metric in metrics.items()
        for index, value in np.ndenumerate(np.asarray(metric))
        if not np.isfinite(value)
    ]
    raise NotFiniteError(
        f"Update {step:,} is not finite: {', '.join(found)}. It learned from rewards from "
        f"{np.min(reward):g} to {np.max(reward):g}."
    )
