"""Operations over single numbers, and sums of them.

XLA compiles the loops whose kernels in TensorFlow are not vectorised on processors; those kernels
would take a tenth of an update. Metagradients differentiate a gradient again. Gradients here are
written so that the second one adds terms as it goes, where TensorFlow would store them first.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf
import tree

from tensor_ops import xla
from tensor_ops.loops import fits, sums_of_parts
from tensor_ops.vector_code import Code, Index, Pointer, Shared, compiled_once

_MANY = 2**23  # numbers; a loop sums so many or more faster than TensorFlow
_AT_ONCE = 4  # vectors of a row, whose sums stay in registers


def where_rows(condition: Any, x: Any, y: Any) -> Any:
    """The rows of one structure where a condition holds, and of another where not.

    Args:
      condition: `[N]` bool, numpy's or TensorFlow's, as all that is selected.
      x, y: structures of `[N, ...]`.
    """
    where = tf.where if tf.is_tensor(condition) else np.where

    def choose(a: Any, b: Any) -> Any:
        return where(condition[(..., *[None] * (len(a.shape) - 1))], a, b)

    return tree.map_structure(choose, x, y)


def as_float(x: tf.Tensor, dtype: tf.DType = tf.float32) -> tf.Tensor:
    """`uint8` scaled to [0, 1], any other type unscaled; in floating type `dtype`."""
    x = tf.convert_to_tensor(x)
    return _fractions(x, dtype) if x.dtype == tf.uint8 else tf.cast(x, dtype)


@tf.custom_gradient
def relu(x: tf.Tensor) -> tuple[tf.Tensor, Callable[[tf.Tensor], tf.Tensor]]:
    """max(x, 0)."""
    y = tf.nn.relu(x)
    return y, lambda of_y: _where_positive(y, of_y)


@tf.custom_gradient
def add_bias(
    x: tf.Tensor, b: tf.Tensor
) -> tuple[tf.Tensor, Callable[[tf.Tensor], tuple[tf.Tensor, tf.Tensor]]]:
    """x + b, of `[..., C]` and `[C]`.

    TensorFlow would fuse the gradient of `tf.nn.bias_add` with the gradient of a convolution's
    weights, which doubles the time of both.
    """
    return x + b, of_sum


@tf.custom_gradient
def of_sum(of_y: tf.Tensor) -> tuple[tuple[tf.Tensor, tf.Tensor], Callable[..., tf.Tensor]]:
    """The gradients of x + b by x and b; its own gradient is a sum too, without b written out."""
    return (of_y, _sum_of_rows(of_y)), add_bias


@tf.custom_gradient
def add_beside(
    x: tf.Tensor, y: tf.Tensor, b: tf.Tensor
) -> tuple[tf.Tensor, Callable[[tf.Tensor], tuple[tf.Tensor, tf.Tensor, tf.Tensor]]]:
    """x + y + b, of `[..., C]`, `[..., C]` and `[C]`: a skip connection, a layer, its bias.

    One loop, where TensorFlow would make two.
    """
    return _add_three(x, y, b), lambda of_z: (of_z, *of_sum(of_z))


def _sum_of_rows(x: tf.Tensor) -> tf.Tensor:
    """`[..., C]` -> `[C]`.

    In float32 a product with ones is the quickest sum, in bfloat16 a loop where they are many.
    """
    features = x.shape[-1]
    rows = tf.reshape(x, [-1, features])
    if x.dtype == tf.bfloat16 and (x.shape.num_elements() or 0) >= _MANY and fits(features):
        total = sums_of_parts(_loop_of_sums(features, x.dtype.name), [rows], features)
        return tf.cast(total, x.dtype)
    if x.dtype != tf.float32:
        return tf.reduce_sum(rows, axis=0)
    return tf.matmul(tf.ones([1, tf.shape(rows)[0]]), rows)[0]


@xla.compiled
def _fractions(x: tf.Tensor, dtype: tf.DType) -> tf.Tensor:
    return tf.cast(tf.cast(x, tf.float32) / 255.0, dtype)


@xla.compiled
def _where_positive(y: tf.Tensor, x: tf.Tensor) -> tf.Tensor:
    return tf.where(y > 0, x, tf.zeros_like(x))


@xla.compiled
def _add_three(x: tf.Tensor, y: tf.Tensor, b: tf.Tensor) -> tf.Tensor:
    return x + (y + b)


@compiled_once
def _loop_of_sums(features: int, kind: str) -> Callable[..., None]:
    """The loop for `in_parts`: it reads x `[N, features]` and writes each part's sums as a row.

    Args:
      features: whole vectors.
      kind: of the numbers of x, as for `Code.load`.
    """
    code = Code([Pointer] * 2 + [Index, Index, Shared])
    x, all_sums, size, parts, taken = code.arguments
    with code.parts(size, parts, taken) as (part, begin, end):
        sums = code.beyond(all_sums, part * features)
        for first in range(0, features, _AT_ONCE * code.lanes):
            places = range(first, min(first + _AT_ONCE * code.lanes, features), code.lanes)
            totals = code.variables([code.zeros() for _ in places])
            with code.loop(end, begin) as row:
                for place, total in zip(places, totals, strict=True):
                    found = code.load(x, row * features + place, kind)
                    total.set(total.get() + found)
            for place, total in zip(places, totals, strict=True):
                code.store(total.get(), sums, place)
    return code.compiled()
