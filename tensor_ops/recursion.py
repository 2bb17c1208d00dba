"""Linear recursions over rows, all rows at once."""

import tensorflow as tf


def scan(decay: tf.Tensor, drive: tf.Tensor, num_rows: int) -> tf.Tensor:
    """All x_t = a_t x_{t−1} + b_t of T rows, with x_{−1} = 0, in ⌈log₂ T⌉ rounds.

    Two steps in a row are one: (a, b) then (a', b') is (a' a, a' b + b'). After round k each row
    has the 2^k steps up to its own as one (Hillis & Steele 1986).

    Args:
      decay: `[T, ...]`, a.
      drive: `[T, ...]`, b.
      num_rows: T, or more, which a graph may not know.

    Returns:
      `[T, ...]`, x.
    """

    def earlier(x: tf.Tensor) -> tf.Tensor:
        """The rows that are `reach` before each; before row 0 there is nothing."""
        return tf.concat([tf.zeros_like(x[:reach]), x[:-reach]], axis=0)

    reach = 1
    while reach < num_rows:
        drive += decay * earlier(drive)
        decay *= earlier(decay)
        reach *= 2
    return drive
