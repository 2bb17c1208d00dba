"""How fast this machine multiplies matrices: the roof over everything that a learner does."""

from collections.abc import Callable

import tensorflow as tf

from benchmarks.timing import Contestant, timed

_SIDE = 2048


def contestants() -> dict[str, Contestant]:
    """Products of two square matrices, in operations per second."""
    return {
        f"matmul_{dtype.name}": Contestant(timed(_product(dtype)), 2.0 * _SIDE**3)
        for dtype in (tf.float32, tf.bfloat16)
    }


def _product(dtype: tf.DType) -> Callable[[], object]:
    matrix = tf.cast(tf.random.stateless_normal([_SIDE, _SIDE], seed=[0, 0]), dtype)

    @tf.function(autograph=False)
    def corner() -> tf.Tensor:
        return tf.matmul(matrix, matrix)[0, 0]

    return lambda: corner().numpy()
