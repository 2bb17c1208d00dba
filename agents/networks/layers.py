"""Layers that compute in a precision of their own; their variables are float32.

Sonnet's layers compute in the precision of their variables.
"""

import math
from collections.abc import Sequence
from typing import Any

import sonnet as snt
import tensorflow as tf

from tensor_ops.convolution import conv2d
from tensor_ops.elementwise import add_bias

# He et al. 2015. Sonnet's default loses two thirds of the signal's size in every layer with a ReLU:
# what differs between two frames of Pong would come out of the torso at a thousandth, and the
# first updates, which move the value of all states alike, would switch most of its units off.
KEEPS_VARIANCE = snt.initializers.VarianceScaling(2.0, "fan_in", "truncated_normal")


class Linear(snt.Module):
    """x W + b.

    Args:
      size: N, units.
      w_init: of W; None is Sonnet's default.
      dtype: of the arithmetic and of the outputs.
    """

    def __init__(
        self,
        size: int,
        *,
        w_init: snt.initializers.Initializer | None = None,
        dtype: tf.DType = tf.float32,
    ) -> None:
        super().__init__()
        self._size = size
        self._w_init = w_init
        self._dtype = dtype

    def __call__(self, x: tf.Tensor) -> tf.Tensor:
        """`[B, D]` -> `[B, N]`."""
        self._create_variables(x)
        x, w, b = (tf.cast(value, self._dtype) for value in (x, self._w, self._b))
        return add_bias(tf.matmul(x, w), b)

    @snt.once
    def _create_variables(self, x: tf.Tensor) -> None:
        self._w = make_weights([x.shape[-1], self._size], self._w_init)
        self._b = tf.Variable(tf.zeros([self._size]), name="b")


class Conv2D(snt.Module):
    """A convolution with square kernels, and its bias.

    Args:
      channels: of the outputs.
      kernel: pixels of its side.
      stride: pixels.
      padding: `VALID` or `SAME`.
      pool: whether the largest of 3 x 3 outputs is taken, at every other.
      w_init: of the weights; None is Sonnet's default.
      dtype: of the arithmetic and of the outputs.
    """

    def __init__(
        self,
        channels: int,
        kernel: int,
        stride: int = 1,
        *,
        padding: str = "SAME",
        pool: bool = False,
        w_init: snt.initializers.Initializer | None = None,
        dtype: tf.DType = tf.float32,
    ) -> None:
        super().__init__()
        self._channels = channels
        self._kernel = kernel
        self._how: dict[str, Any] = dict(stride=stride, padding=padding, pool=pool)
        self._w_init = w_init
        self._dtype = dtype

    def __call__(
        self, x: tf.Tensor, *, after_relu: bool = False, plus: tf.Tensor | None = None
    ) -> tf.Tensor:
        """`[B, H, W, C]` -> `[B, H', W', channels]`; arguments as for `conv2d`."""
        self._create_variables(x.shape[3])
        return conv2d(
            x, self._w, self._b, dtype=self._dtype, after_relu=after_relu, plus=plus, **self._how
        )

    @snt.once
    def _create_variables(self, num_channels: int) -> None:
        shape = [self._kernel, self._kernel, num_channels, self._channels]
        self._w = make_weights(shape, self._w_init)
        self._b = tf.Variable(tf.zeros([self._channels]), name="b")


def initial_weights(shape: Sequence[int]) -> tf.Tensor:
    """Sonnet's default: the deviation is 1 / √inputs, which are all axes but the last."""
    return snt.initializers.TruncatedNormal(stddev=math.prod(shape[:-1]) ** -0.5)(shape, tf.float32)


def make_weights(shape: Sequence[int], w_init: snt.initializers.Initializer | None) -> tf.Variable:
    initial = w_init(shape, tf.float32) if w_init else initial_weights(shape)
    return tf.Variable(initial, name="w")
