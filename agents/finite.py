"""What is learned from must be finite: a single NaN is soon in every parameter, and then saved."""

from collections.abc import Sequence

import numpy as np


class NotFiniteError(ArithmeticError):
    """A reward is infinite or not a number."""


def check_rewards(reward: np.ndarray, names: Sequence[str]) -> None:
    """Accepts the rewards of one step.

    Args:
      reward: `[N]`.
      names: `[N]`, of the environments that gave them.

    Raises:
      NotFiniteError: naming the first environment whose reward is not finite.
    """
    finite = np.isfinite(reward)
    if not finite.all():
        i, n = int(np.argmin(finite)), len(names)
        which = f", environment {i + 1} of {n}," if n > 1 else ""
        raise NotFiniteError(
            f"{names[i]}{which} gave the reward {reward[i]}: rewards must be finite."
        )
