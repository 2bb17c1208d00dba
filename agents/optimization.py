"""What learners need around Sonnet's optimizers."""

from collections.abc import Sequence

import sonnet as snt
import tensorflow as tf


def create_slots(optimizer: snt.Optimizer, parameters: Sequence[tf.Variable]) -> None:
    """Makes the optimizer's variables now, for a checkpoint to find them: by a step of zeros."""
    optimizer.apply([tf.zeros_like(p) for p in parameters], parameters)


def annealed(initial: float, step: tf.Tensor, num_steps: int) -> tf.Tensor:
    """A line from `initial` at step 0 to 0 at step `num_steps` and ever after, float32.

        α_n = α_0 max(0, 1 − n / N)

    Args:
      initial: α_0.
      step: n, an integer.
      num_steps: N.
    """
    # In float64: float32 cannot tell steps apart beyond 2^24.
    left = 1.0 - tf.cast(step, tf.float64) / num_steps
    return tf.cast(initial * tf.maximum(left, 0.0), tf.float32)


def clip_by_global_norm(
    gradients: Sequence[tf.Tensor], limit: float | None
) -> tuple[Sequence[tf.Tensor], tf.Tensor]:
    """Scales all gradients alike, so that their common norm is `limit` at most; None leaves them.

    Returns:
      The gradients, and the norm that they had.
    """
    if limit is None:
        return gradients, tf.linalg.global_norm(gradients)
    return tf.clip_by_global_norm(gradients, limit)
