"""How fast this machine multiplies matrices: the roof over everything that a learner does."""

from collections.abc import Callable

import tensorflow as tf

from benchmarks.timing import Contestant, timed

_SIDE, _SIDE_ON_GPU = 2048, 8192  # a GPU takes longer to be told of the smaller one than to make it


def contestants() -> dict[str, Contestant]:
    """Products of two square matrices, in operations per second."""
    side = _SIDE_ON_GPU if tf.config.list_logical_devices("GPU") else _SIDE
    return {
        f"matmul_{dtype.name}": Contestant(timed(_product(dtype, side)), 2.0 * side**3)
        for dtype in (tf.float32, tf.bfloat16)
    }


def _product(dtype: tf.DType, side: int) -> Callable[[], object]:
    matrix = tf.cast(tf.random.stateless_normal([side, side], seed=[0, 0]), dtype)

    @tf.function(autograph=False)
    def corner() -> tf.Tensor:
        return tf.matmul(matrix, matrix)[0, 0]

    return lambda: corner().numpy()
