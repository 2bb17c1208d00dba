"""R2D2's targets: value rescaling, n-step double Q-learning; and an item's priority from them.

Learner and actor compute them alike.
"""

import tensorflow as tf

from agents.masking import transform_reward
from agents.prioritized import n_step_returns
from r2d2.config import Config


def h(x: tf.Tensor, epsilon: float) -> tf.Tensor:
    """Rescales values, so that rewards need no clipping (Kapturowski et al. 2019, Section 2.3).

        h(x) = sign(x) (√(|x| + 1) − 1) + ε x

    Args:
      x: any shape.
      epsilon: ε, which keeps the inverse Lipschitz.
    """
    # √(|x| + 1) − 1 = |x| / (√(|x| + 1) + 1), which loses no digits near 0.
    return x / (tf.sqrt(tf.abs(x) + 1.0) + 1.0) + epsilon * x


def h_inverse(x: tf.Tensor, epsilon: float) -> tf.Tensor:
    """The inverse of `h`.

        h⁻¹(x) = sign(x) (z² − 1),   z = 2 s / (1 + √(1 + 4 ε s)),   s = |x| + 1 + ε

    z is the positive root of ε z² + z = s. At x = 0 the square root is 1 + 2 ε and z is 1, so in
    float32 the difference z² − 1 has no correct digit near 0. What is computed is u = z − 1, in a
    form that has |x| as a factor:

        u = 2 |x| (1 − 2 ε / (1 + 2 ε + √(1 + 4 ε s))) / (1 + √(1 + 4 ε s)),   z² − 1 = u (u + 2)

    Args:
      x: any shape.
      epsilon: ε of `h`.
    """
    size = tf.abs(x)
    root = tf.sqrt(1.0 + 4.0 * epsilon * (size + 1.0 + epsilon))
    u = 2.0 * size * (1.0 - 2.0 * epsilon / (1.0 + 2.0 * epsilon + root)) / (1.0 + root)
    return tf.sign(x) * u * (u + 2.0)


def double_q_values(online_q: tf.Tensor, target_q: tf.Tensor) -> tf.Tensor:
    """The target network's value of the online network's choice (van Hasselt et al. 2016).

        v = Q(s, a*; θ⁻),   a* = argmax_a Q(s, a; θ)

    Args:
      online_q: `[..., A]`, of θ.
      target_q: `[..., A]`, of θ⁻.

    Returns:
      `[...]`.
    """
    choice = tf.argmax(online_q, axis=-1)
    return tf.gather(target_q, choice, axis=-1, batch_dims=choice.shape.rank)


def discounts(config: Config, continuation: tf.Tensor, life_lost: tf.Tensor) -> tf.Tensor:
    """γ_t `[L, B]`, of row t + 1 as seen from row t; arguments as `item_targets` has them."""
    discount = config.discount * continuation
    if config.life_loss == "none":
        return discount
    # The life that step t lost is seen on row t + 1.
    return tf.where(life_lost[1:], tf.zeros_like(discount), discount)


def item_targets(
    config: Config,
    value: tf.Tensor,
    reward: tf.Tensor,
    continuation: tf.Tensor,
    life_lost: tf.Tensor,
    mask: tf.Tensor,
) -> tf.Tensor:
    """The targets of an item's trained rows, from the stream's fields (Section 2.3).

        y_t = h(Σ_{k<m} γ^k r_{t+k} + γ^m h⁻¹(v_{t+m}))

    Args:
      config: the treatment of rewards, lost lives and values.
      value: `[L + 1, B]`, v: each row's value for bootstrapping.
      reward: `[L, B]` raw.
      continuation: `[L, B]` 0 or 1.
      life_lost: `[L + 1, B]` bool: a life was lost between the row before and this one.
      mask: `[L, B]` 1 on real steps.

    Returns:
      y, `[L, B]`; for m and the rows that mean nothing see `n_step_returns`.
    """
    discount = discounts(config, continuation, life_lost)
    reward = transform_reward(reward, config.reward_transform)
    if not config.rescale:
        return n_step_returns(value, reward, discount, mask, config.n_step)
    value = h_inverse(value, config.rescaling_epsilon)
    returns = n_step_returns(value, reward, discount, mask, config.n_step)
    return h(returns, config.rescaling_epsilon)
