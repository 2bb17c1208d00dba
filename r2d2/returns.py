"""Better returns than n-step ones, and MEME's steadier loss; for runs whose config asks for them.

Soft Watkins Q(λ), trust region and normalised errors are of MEME (Kapturowski et al. 2022, "Human-
level Atari 200x faster", arXiv 2209.07550), Retrace(λ) of Munos et al. 2016, the log-policy in the
reward of Vieillard et al. 2020, "Munchausen reinforcement learning".

All that a target takes of a row is its `RowValues`: a learner computes them of a batch, an actor of
the row that it has just acted on, by the same function. docs/returns.md has the choices where the
papers are silent.
"""

import dataclasses
import functools
from collections.abc import Callable
from typing import NamedTuple

import tensorflow as tf
from acme import specs

from agents.contract import Agent
from agents.masking import masked_mean, transform_reward
from agents.networks.network import RecurrentNetwork
from agents.prioritized import batch_weights, make_initial_priority, n_step_returns
from agents.several_learners import current
from r2d2.config import Config
from r2d2.learner import Evaluation, R2D2Update, q_learning_loss
from r2d2.policy import make_following, make_policy
from r2d2.targets import discounts, h, h_inverse
from replay.structures import Batch
from tensor_ops.recursion import scan

LEAST_SIGMA = 0.01  # MEME: where errors are tiny, noise would be amplified
SIGMA_RATE = 0.01  # share of a batch in the running variance
MakeNetwork = Callable[[specs.EnvironmentSpec], RecurrentNetwork]


class RowValues(NamedTuple):
    """What targets take of a row, `[...]` each, in the units of rewards: without h."""

    value: tf.Tensor  # V, to bootstrap from
    taken: tf.Tensor  # Q of the action taken
    trace: tf.Tensor  # c in [0, λ]: to what part a return goes on with the action taken
    bonus: tf.Tensor  # Munchausen's, which is added to the reward


def scaled_log_softmax(q: tf.Tensor, tau: float) -> tf.Tensor:
    """τ log π of π = softmax(q / τ), which a small τ does not make infinite.

        τ log π(a) = q(a) − max q − τ log Σ_b exp((q(b) − max q) / τ)

    Vieillard et al. 2020, Appendix B.1.

    Args:
      q: `[..., A]`.
      tau: τ.

    Returns:
      `[..., A]`, none above 0.
    """
    below = q - tf.reduce_max(q, axis=-1, keepdims=True)
    return below - tau * tf.reduce_logsumexp(below / tau, axis=-1, keepdims=True)


def row_values(
    config: Config, q: tf.Tensor, greedy: tf.Tensor, index: tf.Tensor, log_mu: tf.Tensor
) -> RowValues:
    """What targets take of rows.

        n_step, watkins   π(a) = 1[a = a*],             V = h⁻¹(Q(a*))
        retrace           π = softmax(h⁻¹(Q) / τ),      V = Σ_a π(a) h⁻¹(Q(a))
        Munchausen        the same π, whichever it is,  V = Σ_a π(a) (h⁻¹(Q(a)) − τ log π(a))

        watkins   c = λ 1[Q(a) ≥ E_π Q − κ |E_π Q|]     (MEME, Section 3.1; Q is within h)
        retrace   c = λ min(1, π(a) / μ(a))             (Munos et al. 2016, Section 3)

        bonus = α clip(τ log π(a), l_0, 0)              (Vieillard et al. 2020, Section 4.1)

    Args:
      config: which of these.
      q: `[..., A]`, a network's outputs, in h's space.
      greedy: `[...]` int, a*.
      index: `[...]` int, a: the actions taken.
      log_mu: `[...]`, log μ of those.
    """
    unscaled = h_inverse(q, config.rescaling_epsilon) if config.rescale else q

    def of(values: tf.Tensor, action: tf.Tensor) -> tf.Tensor:
        return tf.gather(values, action, axis=-1, batch_dims=action.shape.rank)

    value, expected, q_taken = of(unscaled, greedy), of(q, greedy), of(q, index)
    bonus = trace = tf.zeros_like(value)
    if config.munchausen_alpha or config.returns == "retrace":
        tau_log_pi = scaled_log_softmax(unscaled, config.tau)
        pi, of_taken = tf.exp(tau_log_pi / config.tau), of(tau_log_pi, index)
        expected = tf.reduce_sum(pi * q, axis=-1)
        value = tf.reduce_sum(pi * unscaled, axis=-1)
        if config.munchausen_alpha:
            value -= tf.reduce_sum(pi * tau_log_pi, axis=-1)
            clipped = tf.clip_by_value(of_taken, config.munchausen_l0, 0.0)
            bonus = config.munchausen_alpha * clipped
        if config.returns == "retrace":
            trace = config.lambda_ * tf.exp(tf.minimum(of_taken / config.tau - log_mu, 0.0))
    if config.returns == "watkins":
        goes_on = q_taken >= expected - config.kappa * tf.abs(expected)
        trace = config.lambda_ * tf.cast(goes_on, tf.float32)
    return RowValues(value, of(unscaled, index), trace, bonus)


def lambda_returns(
    rows: RowValues, reward: tf.Tensor, discount: tf.Tensor, mask: tf.Tensor, length: int
) -> tf.Tensor:
    """Off-policy λ-returns within an item (Munos et al. 2016, Equation 3, as a recursion).

        G_t = r_t + γ_t (V_{t+1} + c_{t+1} (G_{t+1} − Q(s_{t+1}, a_{t+1})))

    c is 0 on rows that are no real steps: the return ends there as `n_step_returns` does, with the
    value of the row after the last real step.

    Args:
      rows: `[L + 1, B]` each; of the last row, and those that are no real steps, V alone counts.
      reward: `[L, B]`, r_t; it has the bonus.
      discount: `[L, B]`, γ_t; 0 where the environment terminated.
      mask: `[L, B]`, 1 on real steps.
      length: L, which a graph may not know.

    Returns:
      G, `[L, B]`; on rows that are no real steps it means nothing.
    """
    shapes = [(x, ("L", "B")) for x in (reward, discount, mask)]
    tf.debugging.assert_shapes([*((x, ("K", "B")) for x in rows), *shapes])
    real = mask > 0
    next_is_real = tf.concat([real[1:], tf.zeros_like(real[:1])], axis=0)
    zeros = tf.zeros_like(reward)
    trace = tf.where(next_is_real, rows.trace[1:], zeros)
    taken = tf.where(next_is_real, rows.taken[1:], zeros)
    total = tf.where(real, reward + discount * (rows.value[1:] - trace * taken), zeros)
    weight = tf.where(real, discount * trace, zeros)
    # G_t = total_t + weight_t G_{t+1}, from the last row to the first.
    return scan(weight[::-1], total[::-1], length)[::-1]


def item_targets(
    config: Config,
    value: tf.Tensor,
    taken: tf.Tensor,
    trace: tf.Tensor,
    bonus: tf.Tensor,
    reward: tf.Tensor,
    continuation: tf.Tensor,
    life_lost: tf.Tensor,
    mask: tf.Tensor,
) -> tf.Tensor:
    """The targets of an item's trained rows `[L, B]`, in h's space: h(G).

    Args:
      config: the treatment of rewards, lost lives and values.
      value, taken, trace, bonus: the rows' `RowValues`, `[L + 1, B]` each.
      reward, continuation, life_lost, mask: as `targets.item_targets` takes them.
    """
    discount = discounts(config, continuation, life_lost)
    reward = transform_reward(reward, config.reward_transform) + bonus[:-1]
    if config.returns == "n_step":
        returns = n_step_returns(value, reward, discount, mask, config.n_step)
    else:
        rows = RowValues(value, taken, trace, bonus)
        returns = lambda_returns(rows, reward, discount, mask, config.length)
    return h(returns, config.rescaling_epsilon) if config.rescale else returns


def leads_away(
    q: tf.Tensor, target_q: tf.Tensor, targets: tf.Tensor, radius: tf.Tensor
) -> tf.Tensor:
    """Whether a step is outside the trust region and would be led further away (MEME, 3.1).

        |Q_θ − Q_θ⁻| > α σ   and   sgn(Q_θ − Q_θ⁻) ≠ sgn(Q_θ − y)

    Args:
      q: `[L, B]`, Q(s, a; θ).
      target_q: `[L, B]`, Q(s, a; θ⁻).
      targets: `[L, B]`, y.
      radius: `[]`, α σ.

    Returns:
      `[L, B]` bool.
    """
    distance = q - target_q
    return (tf.abs(distance) > radius) & (tf.sign(distance) != tf.sign(q - targets))


def deviation(error: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
    """The standard deviation `[]` of errors `[L, B]`, over the real steps of all learners."""
    real = tf.cast(tf.where(mask > 0, error, tf.zeros_like(error)), tf.float64)
    parts = [tf.cast(mask, tf.float64), real, tf.square(real)]
    (sums,) = current().sum([tf.stack([tf.reduce_sum(part) for part in parts])])
    mean, square = (tf.math.divide_no_nan(total, sums[0]) for total in (sums[1], sums[2]))
    return tf.cast(tf.sqrt(tf.maximum(square - tf.square(mean), 0.0)), tf.float32)


class ReturnsUpdate(R2D2Update):
    """R2D2's update with a config's returns, and with MEME's loss where it asks for that."""

    def __init__(
        self, network: RecurrentNetwork, target_network: RecurrentNetwork, config: Config
    ) -> None:
        super().__init__(network, target_network, config)
        self._has_sigma = config.trust_region > 0 or config.normalise_td
        if self._has_sigma:
            self._variance = tf.Variable(0.0, trainable=False, name="td_variance")

    def _compare(self, online_q: tf.Tensor, target_q: tf.Tensor, batch: Batch) -> Evaluation:
        config = self._config
        rows, weights = (
            batch.trained(config.burn_in),
            batch_weights(batch, config.importance_exponent),
        )
        index = self._joint.index(rows.action)
        q_taken = tf.gather(online_q[:-1], index, axis=-1, batch_dims=2)  # [L, B]
        q = online_q if config.trust_region else target_q
        greedy = tf.argmax(online_q, axis=-1)
        # Of the last row no action counts.
        taken, log_mu = (
            tf.concat([x, tf.zeros_like(x[:1])], axis=0) for x in (index, rows.log_probability)
        )
        found = row_values(config, q, greedy, taken, log_mu)
        stream = rows.reward, rows.continuation, rows.life_lost, rows.mask
        targets = tf.stop_gradient(item_targets(config, *found, *stream))
        if not self._has_sigma:
            loss = q_learning_loss(q_taken, targets, rows.mask, weights)
            return Evaluation(loss, q_taken, targets)

        of_batch = deviation(tf.stop_gradient(targets - q_taken), rows.mask)
        sigma = tf.maximum(tf.maximum(tf.sqrt(self._variance), of_batch), LEAST_SIGMA)
        metrics = {"sigma": sigma, "batch_sigma": of_batch}
        mask = rows.mask
        if config.trust_region:
            q_of_target = tf.gather(target_q[:-1], index, axis=-1, batch_dims=2)
            away = leads_away(q_taken, q_of_target, targets, config.trust_region * sigma)
            mask = tf.where(away, tf.zeros_like(mask), mask)
            metrics["learned_share"] = masked_mean(mask, rows.mask)
        loss = q_learning_loss(q_taken, targets, mask, weights)
        if config.normalise_td:
            loss /= tf.square(sigma)
        return Evaluation(loss, q_taken, targets, metrics)

    def _follow(self, evaluation: Evaluation) -> None:
        super()._follow(evaluation)
        if self._has_sigma:
            change = tf.square(evaluation.metrics["batch_sigma"]) - self._variance
            self._variance.assign_add(SIGMA_RATE * change)


def _more(
    config: Config, q: tf.Tensor, index: tf.Tensor, log_mu: tf.Tensor
) -> dict[str, tf.Tensor]:
    """`RowValues`, as more values of a policy."""
    return row_values(config, q, tf.argmax(q, axis=-1), index, log_mu)._asdict()


def changed(agent: Agent, make_network: MakeNetwork) -> Agent:
    """An R2D2, whose networks are made so, with the returns of its config."""
    config = agent.config
    more = functools.partial(_more, config)
    return dataclasses.replace(
        agent,
        make_policy=functools.partial(make_policy, config, more=more),
        make_following=functools.partial(make_following, more=more),
        make_update=lambda spec: ReturnsUpdate(make_network(spec), make_network(spec), config),
        initial_priority=make_initial_priority(config, RowValues._fields, item_targets),
    )
