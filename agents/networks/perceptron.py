"""Heads with hidden layers of their own."""

from collections.abc import Sequence

import sonnet as snt
import tensorflow as tf

from agents.networks.layers import KEEPS_VARIANCE, Linear
from tensor_ops.elementwise import relu


class Perceptron(snt.Module):
    """Hidden layers with ReLUs, computed in `dtype`, then a linear one of N, `size`.

    Policy and value of a head are one each (Zahavy et al. 2020, Section 9.3).
    """

    def __init__(self, size: int, hidden_sizes: Sequence[int], dtype: tf.DType) -> None:
        super().__init__()
        self._hidden = [Linear(h, w_init=KEEPS_VARIANCE, dtype=dtype) for h in hidden_sizes]
        self._output = snt.Linear(size)

    def __call__(self, x: tf.Tensor) -> tf.Tensor:
        """`[B, H]` -> `[B, N]`, both of one type."""
        hidden = x
        for layer in self._hidden:
            hidden = relu(layer(hidden))
        return self._output(tf.cast(hidden, x.dtype))
