"""Random tensors, and the derivatives that tests of operations compare."""

from collections.abc import Callable

import numpy as np
import tensorflow as tf

HALF_STEP = 2.0**-8  # by which rounding to bfloat16 moves a number, relative to it, at most


def normal(*shape: int, seed: int = 0) -> tf.Tensor:
    return tf.constant(np.random.default_rng(seed).normal(size=shape), tf.float32)


def random_bytes(*shape: int) -> tf.Tensor:
    return tf.constant(np.random.default_rng(0).integers(256, size=shape, dtype=np.uint8))


def derivatives(
    function: Callable[..., tf.Tensor], inputs: list[tf.Tensor]
) -> tuple[list[tf.Tensor], tf.Tensor]:
    """A function's gradients by its inputs, and of their sum by the output's gradient."""
    y = function(*inputs)
    given = tf.cast(normal(*y.shape, seed=4), y.dtype)
    weights = [tf.cast(normal(*x.shape, seed=5), x.dtype) for x in inputs]
    with tf.GradientTape() as outer:
        outer.watch(given)
        with tf.GradientTape() as inner:
            inner.watch(inputs)
            y = function(*inputs)
        gradients = inner.gradient(y, inputs, output_gradients=given)
    return gradients, outer.gradient(gradients, given, output_gradients=weights)
