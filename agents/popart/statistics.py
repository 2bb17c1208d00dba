"""PopArt: values normalised per task, unchanged when the normalisation changes.

Van Hasselt et al. 2016; Hessel et al. 2018, "Adaptive normalisation" and "Implementation notes".
"""

from collections.abc import Mapping

import sonnet as snt
import tensorflow as tf

from agents import several_learners
from agents.masking import zero_where_masked
from agents.popart.config import Config


class PopArt(tf.Module):
    """Normalises the values of K tasks. Implements `agents.impala.learner.Normaliser`.

    The network gives n, one output for each task; its value is v = σ ⊙ n + μ (Equation 10). The
    statistics begin with μ = 0 and ν = 1, so that values begin as the network's outputs; the paper
    does not say.

    Args:
      value_layer: gives n `[..., K]`; its variables exist.
      config: β, and the least and the greatest σ.
    """

    def __init__(self, value_layer: snt.Linear, config: Config) -> None:
        super().__init__(name="popart")
        num_tasks = value_layer.output_size
        # In float64: ν − μ² of float32 would lose a σ that is a thousandth of μ.
        self.mu = tf.Variable(tf.zeros([num_tasks], tf.float64), trainable=False, name="mu")
        self.nu = tf.Variable(tf.ones([num_tasks], tf.float64), trainable=False, name="nu")
        self._value_layer = value_layer
        self._config = config

    @property
    def sigma(self) -> tf.Tensor:
        """σ = √(ν − μ²), clipped; `[K]` float64."""
        variance = tf.maximum(self.nu - tf.square(self.mu), 0.0)
        return tf.clip_by_value(tf.sqrt(variance), self._config.scale_min, self._config.scale_max)

    def shift_and_scale(self, task: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Tasks `[B]` -> μ and σ, `[B]` float32 each."""
        mu, sigma = (tf.gather(x, task) for x in (self.mu, self.sigma))
        return tf.cast(mu, tf.float32), tf.cast(sigma, tf.float32)

    def adapt(self, target: tf.Tensor, mask: tf.Tensor, task: tf.Tensor) -> Mapping[str, tf.Tensor]:
        """Follows a batch's targets, then changes the value layer so that no value changes.

        Comes after the optimizer's step ("Implementation notes").

        Args:
          target: `[L, B]`, v-trace targets, unnormalised; mask: 1 on real steps; task: `[B]`.

        Returns:
          The new `mu` and `sigma`, `[K]` each.
        """
        mu, sigma = tf.identity(self.mu), self.sigma
        own = rollout_means(target, mask, task, num_tasks=mu.shape[0])
        is_task, mean = (several_learners.current().gather(x) for x in own)
        decay = self._config.statistics_decay
        self.mu.assign(moving_average(self.mu, mean, is_task, decay))
        self.nu.assign(moving_average(self.nu, tf.square(mean), is_task, decay))
        self._preserve_outputs(mu, sigma)
        return {"mu": tf.cast(self.mu, tf.float32), "sigma": tf.cast(self.sigma, tf.float32)}

    def _preserve_outputs(self, mu: tf.Tensor, sigma: tf.Tensor) -> None:
        """Equation 13: w' = σ / σ' w,  b' = σ / σ' b + (μ − μ') / σ'; μ and σ are the old ones."""
        layer, ratio = self._value_layer, sigma / self.sigma
        w = ratio * tf.cast(layer.w, tf.float64)  # [H, K]
        b = ratio * tf.cast(layer.b, tf.float64) + (mu - self.mu) / self.sigma  # [K]
        layer.w.assign(tf.cast(w, tf.float32))
        layer.b.assign(tf.cast(b, tf.float32))


def rollout_means(
    target: tf.Tensor, mask: tf.Tensor, task: tf.Tensor, num_tasks: int
) -> tuple[tf.Tensor, tf.Tensor]:
    """The mean of each rollout's targets, where mask `[L, B]` is 1, and the task it counts for.

    Returns:
      `[B, K]` float64, 1 at a rollout's task and 0 elsewhere, all 0 without real steps; and the
      means `[B]` float64.
    """
    tf.debugging.assert_shapes([(target, ("L", "B")), (mask, ("L", "B")), (task, ("B",))])
    count = tf.cast(tf.reduce_sum(mask, axis=0), tf.float64)
    total = tf.reduce_sum(tf.cast(zero_where_masked(target, mask), tf.float64), axis=0)
    is_task = tf.one_hot(task, num_tasks, dtype=tf.float64)
    is_task *= tf.cast(count > 0, tf.float64)[:, tf.newaxis]
    return is_task, total / tf.maximum(count, 1.0)


def moving_average(
    average: tf.Tensor, values: tf.Tensor, is_task: tf.Tensor, decay: float
) -> tf.Tensor:
    """One online update of its task's average for each value, in order (Equation 6).

        m_k ← (1 − β) m_k + β x_b    for b = 1, ..., B, with k the task of b

    All of them at once: if n_b values of the same task come after b, and N_k in all are of task k,

        m_k ← (1 − β)^N_k m_k + Σ_b β (1 − β)^n_b x_b

    Args:
      average: `[K]`, m.
      values: `[B]`, x.
      is_task: `[B, K]`, 1 at the task of b, 0 elsewhere; all 0 where b counts for none.
      decay: β.

    Returns:
      `[K]`; the average of a task without values does not change by a bit.
    """
    tf.debugging.assert_shapes([(average, ("K",)), (values, ("B",)), (is_task, ("B", "K"))])
    kept = tf.constant(1.0 - decay, average.dtype)
    later = tf.cumsum(is_task, axis=0, exclusive=True, reverse=True)  # [B, K]
    weight = decay * is_task * tf.pow(kept, later)
    count = tf.reduce_sum(is_task, axis=0)  # [K]
    return tf.pow(kept, count) * average + tf.linalg.matvec(weight, values, transpose_a=True)
