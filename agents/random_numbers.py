"""Random floats that are the same for a seed in TensorFlow's operations and in what XLA compiles.

Only the whole numbers that a `tf.random.Generator` gives are: so these are made of them.
"""

from typing import Any

import tensorflow as tf

_STEPS = 2**23  # as many odd numbers are below 2^24, and a float32 holds each


def uniform(generator: tf.random.Generator, shape: Any) -> tf.Tensor:
    """Numbers between 0 and 1, each an odd multiple of 2^-24 and so neither bound: float32."""
    numbers = generator.uniform(shape, maxval=_STEPS, dtype=tf.int32)
    return (2.0 * tf.cast(numbers, tf.float32) + 1.0) / (2 * _STEPS)


def normal(generator: tf.random.Generator, shape: Any) -> tf.Tensor:
    """Numbers of the standard normal distribution, at most 5.3 from 0: float32."""
    return tf.math.ndtri(uniform(generator, shape))


def categorical(generator: tf.random.Generator, logits: tf.Tensor) -> tf.Tensor:
    """Draws from softmax(logits), `[N, A]`: `[N]` int32, by the Gumbel-max trick.

    argmax_a logits_a − log(−log u_a),   u_a uniform between 0 and 1
    """
    noise = -tf.math.log(-tf.math.log(uniform(generator, tf.shape(logits))))
    return tf.argmax(logits + noise, axis=-1, output_type=tf.int32)
