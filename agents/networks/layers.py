"""Layers that compute in a precision of their own; their variables are float32.

Sonnet's layers compute in the precision of their variables. The loops that are compiled here are
those whose kernels in TensorFlow are not vectorised on processors: they would take a tenth of an
update. A gradient that is differentiated again by what it was given, as a metagradient is, has its
own way here where TensorFlow's would write out what can be added on the way.
"""

import math
from collections.abc import Callable, Sequence

import sonnet as snt
import tensorflow as tf

from agents.networks import sum_code, xla
from agents.networks.loops import fits, sums_of_parts

_MANY = 2**23  # numbers, of which a loop has the sum sooner than TensorFlow


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


def as_float(x: tf.Tensor, dtype: tf.DType = tf.float32) -> tf.Tensor:
    """`uint8` scaled to [0, 1], anything else as it is; in that floating type."""
    x = tf.convert_to_tensor(x)
    return _fractions(x, dtype) if x.dtype == tf.uint8 else tf.cast(x, dtype)


@tf.custom_gradient
def relu(x: tf.Tensor) -> tuple[tf.Tensor, Callable[[tf.Tensor], tf.Tensor]]:
    """max(x, 0)."""
    y = tf.nn.relu(x)
    return y, lambda of_y: _where_positive(y, of_y)


@tf.custom_gradient
def relu_beside(
    x: tf.Tensor,
) -> tuple[tuple[tf.Tensor, tf.Tensor], Callable[[tf.Tensor, tf.Tensor], tf.Tensor]]:
    """max(x, 0), and x itself for what passes by: one loop adds what is learned of both."""
    y = tf.nn.relu(x)
    return (y, x), lambda of_y, of_x: _where_positive_and(y, of_y, of_x)


@tf.custom_gradient
def add_bias(
    x: tf.Tensor, b: tf.Tensor
) -> tuple[tf.Tensor, Callable[[tf.Tensor], tuple[tf.Tensor, tf.Tensor]]]:
    """x + b, of `[..., C]` and `[C]`.

    The gradient of `tf.nn.bias_add` would be taken together with that of a convolution's weights,
    which doubles the time of both.
    """
    return x + b, of_sum


@tf.custom_gradient
def of_sum(of_y: tf.Tensor) -> tuple[tuple[tf.Tensor, tf.Tensor], Callable[..., tf.Tensor]]:
    """The gradients of x + b by x and b; its own is again a sum, in which b is not written out."""
    return (of_y, _sum_of_rows(of_y)), add_bias


@tf.custom_gradient
def add_beside(
    x: tf.Tensor, y: tf.Tensor, b: tf.Tensor
) -> tuple[tf.Tensor, Callable[[tf.Tensor], tuple[tf.Tensor, tf.Tensor, tf.Tensor]]]:
    """x + y + b, of `[..., C]`, `[..., C]` and `[C]`: what passes by a layer, the layer, its bias.

    In one loop, where TensorFlow would make two.
    """
    return _add_three(x, y, b), lambda of_z: (of_z, *of_sum(of_z))


def _sum_of_rows(x: tf.Tensor) -> tf.Tensor:
    """`[..., C]` -> `[C]`.

    In float32 a product with ones is the quickest sum, in bfloat16 a loop where they are many.
    """
    features = x.shape[-1]
    rows = tf.reshape(x, [-1, features])
    if x.dtype == tf.bfloat16 and (x.shape.num_elements() or 0) >= _MANY and fits(features):
        total = sums_of_parts(sum_code.rows(features, x.dtype.name), [rows], features)
        return tf.cast(total, x.dtype)
    if x.dtype != tf.float32:
        return tf.reduce_sum(rows, axis=0)
    return tf.matmul(tf.ones([1, tf.shape(rows)[0]]), rows)[0]


def initial_weights(shape: Sequence[int]) -> tf.Tensor:
    """Sonnet's default: the deviation is 1 / √inputs, which are all axes but the last."""
    return snt.initializers.TruncatedNormal(stddev=math.prod(shape[:-1]) ** -0.5)(shape, tf.float32)


def make_weights(shape: Sequence[int], w_init: snt.initializers.Initializer | None) -> tf.Variable:
    initial = w_init(shape, tf.float32) if w_init else initial_weights(shape)
    return tf.Variable(initial, name="w")


@xla.compiled
def _fractions(x: tf.Tensor, dtype: tf.DType) -> tf.Tensor:
    return tf.cast(tf.cast(x, tf.float32) / 255.0, dtype)


@xla.compiled
def _where_positive(y: tf.Tensor, x: tf.Tensor) -> tf.Tensor:
    return tf.where(y > 0, x, tf.zeros_like(x))


@xla.compiled
def _where_positive_and(y: tf.Tensor, x: tf.Tensor, beside: tf.Tensor) -> tf.Tensor:
    return beside + tf.where(y > 0, x, tf.zeros_like(x))


@xla.compiled
def _add_three(x: tf.Tensor, y: tf.Tensor, b: tf.Tensor) -> tf.Tensor:
    return x + (y + b)
