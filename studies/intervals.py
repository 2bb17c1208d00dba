"""Intervals of means over the few seeds of a study."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

STUDENT_T = {3: 4.303, 5: 2.776}  # 97.5% quantiles, by the number of values


class Interval(NamedTuple):
    """A mean, and how far its 95% interval reaches to either side."""

    mean: float
    margin: float

    def __str__(self) -> str:
        return f"{self.mean:.2f} ± {self.margin:.2f}"


def interval(values: Sequence[float]) -> Interval:
    """Student's 95% interval of a mean.

        x̄ ± t s / √n,   s² = Σ (x − x̄)² / (n − 1)

    Raises:
      ValueError: when `STUDENT_T` has no t for so many values.
    """
    if len(values) not in STUDENT_T:
        raise ValueError(f"Expected {' or '.join(map(str, STUDENT_T))} values, got {len(values)}.")
    deviation = float(np.std(values, ddof=1))
    margin = STUDENT_T[len(values)] * deviation / math.sqrt(len(values))
    return Interval(float(np.mean(values)), margin)
