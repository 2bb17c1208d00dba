"""V-trace as the paper writes it: a sum for every row, one column at a time."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf
import tree

from agents.impala.config import Config
from agents.impala.distributions import Categorical, SquashedGaussian
from agents.impala.learner import ImpalaUpdate
from agents.impala.vtrace import Hyperparameters, Outputs, fixed_hyperparameters
from replay.structures import Batch, TrainedRows


class Unrolls(NamedTuple):
    """Random unrolls, float32."""

    value: np.ndarray  # [T + 1, B]
    reward: np.ndarray  # [T, B]
    discount: np.ndarray  # [T, B]
    log_ratio: np.ndarray  # [T, B]
    mask: np.ndarray  # [T, B]


def random_unrolls(num_steps: int, size: int, seed: int = 0) -> Unrolls:
    """Ratios on both sides of 1 and 2; terminations and episode ends on random rows."""
    rng = np.random.default_rng(seed)
    discount = np.where(rng.random((num_steps, size)) < 0.1, 0, rng.uniform(0.8, 1, (1, size)))
    unrolls = Unrolls(
        value=rng.normal(size=(num_steps + 1, size)),
        reward=rng.normal(size=(num_steps, size)),
        discount=discount,
        log_ratio=rng.normal(size=(num_steps, size)),
        mask=(rng.random((num_steps, size)) > 0.15),
    )
    return Unrolls(*(x.astype(np.float32) for x in unrolls))


def weights(
    log_ratio: np.ndarray,
    correction: str,
    rho_bar: float,
    c_bar: float,
    lambda_: float,
    alpha_rho: float = 1.0,
    alpha_c: float = 1.0,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """ρ of the temporal differences, c, and ρ of the policy gradient, `[T, B]` each."""
    delta, trace, policy = np.ones((3, *log_ratio.shape))
    for index, log_value in np.ndenumerate(log_ratio):
        ratio = np.exp(np.float64(log_value))
        rho = alpha_rho * min(rho_bar, ratio) + (1 - alpha_rho) * ratio
        if correction == "vtrace":
            delta[index] = rho
            trace[index] = alpha_c * min(c_bar, ratio) + (1 - alpha_c) * ratio
        if correction in ("vtrace", "one_step"):
            policy[index] = rho
    return delta, lambda_ * trace, policy


def returns(unrolls: Unrolls, rho: np.ndarray, c: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """v_s and q_s of every real row; NaN on the others."""
    v, q = np.full((2, *unrolls.reward.shape), np.nan)
    for b in range(v.shape[1]):
        column = Unrolls(*(x[:, b].astype(np.float64) for x in unrolls))
        for s in np.flatnonzero(column.mask):
            v[s, b] = _target(column, rho[:, b], c[:, b], s)
            goes_on = s + 1 < len(column.mask) and column.mask[s + 1]
            following = _target(column, rho[:, b], c[:, b], s + 1) if goes_on else None
            v_tp1 = column.value[s + 1] if following is None else following
            q[s, b] = column.reward[s] + column.discount[s] * v_tp1
    return v, q


def _target(column: Any, rho: np.ndarray, c: np.ndarray, s: int) -> float:
    """Equation 1, up to the end of the episode or of the unroll."""
    total = column.value[s]
    for t in range(s, len(column.reward)):
        if column.mask[t] == 0:
            break
        weight = np.prod([column.discount[i] * c[i] for i in range(s, t)])
        error = column.reward[t] + column.discount[t] * column.value[t + 1] - column.value[t]
        total += weight * rho[t] * error
    return float(total)


def log_softmax(logits: np.ndarray) -> np.ndarray:
    """The logarithm of the softmax over the last axis."""
    return logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))


def log_ratio(outputs: Outputs, rows: TrainedRows) -> np.ndarray:
    """log π / μ of the actions taken, `[L, B]`."""
    return log_probability(outputs, rows) - rows.log_probability


def targets(
    outputs: Outputs, rows: TrainedRows, hyperparameters: Hyperparameters, correction: str
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """v and q in the rewards' units, NaN where masked, and ρ of the policy gradient; `[L, B]`."""
    h, ratio = hyperparameters, log_ratio(outputs, rows)
    unrolls = Unrolls(
        value=outputs.scale * outputs.value + outputs.shift,
        reward=rows.reward,
        discount=h.discount * rows.continuation,
        log_ratio=ratio,
        mask=rows.mask,
    )
    rho, c, policy = weights(
        ratio, correction, h.rho_bar, h.c_bar, h.lambda_, h.alpha_rho, h.alpha_c
    )
    return *returns(unrolls, rho, c), policy


def losses(
    outputs: Outputs, rows: TrainedRows, hyperparameters: Hyperparameters, correction: str
) -> tuple[float, np.ndarray]:
    """The loss of arrays, and the targets `[L, B]` in the rewards' units; NaN where masked."""
    h, n = hyperparameters, outputs.value
    v, q, policy = targets(outputs, rows, h, correction)
    taken = log_probability(outputs, rows)
    if correction == "epsilon":
        taken = np.log(np.exp(taken) + 1e-6)
    advantage = (q - outputs.shift) / outputs.scale - n[:-1]
    loss = -h.policy_gradient_cost * policy * advantage * taken
    loss += h.baseline_cost * 0.5 * ((v - outputs.shift) / outputs.scale - n[:-1]) ** 2
    loss += h.entropy_cost * regularisation(outputs.policy)
    return float(loss[rows.mask > 0].sum()), v


def log_probability(outputs: Outputs, rows: TrainedRows) -> np.ndarray:
    """log π(a | x), `[L, B]`."""
    policy: Any = outputs.policy
    if isinstance(policy, SquashedGaussian):
        return _log_density(policy, rows.action)
    log_pi = log_softmax(policy.logits)
    return np.take_along_axis(log_pi, rows.action[..., None], -1)[..., 0]


def _log_density(policy: SquashedGaussian, u: np.ndarray) -> np.ndarray:
    """The log-density of tanh(u), number by number."""
    total = np.zeros(u.shape[:-1])
    for index, value in np.ndenumerate(u):
        mean, sigma = policy.mean[index], np.exp(policy.log_sigma[index])
        gaussian = np.exp(-((value - mean) ** 2) / (2 * sigma**2)) / (sigma * np.sqrt(2 * np.pi))
        total[index[:-1]] += np.log(gaussian / (1 - np.tanh(value) ** 2))
    return total


def regularisation(policy: Any) -> np.ndarray:
    """The negative entropy, or the divergence from the standard Gaussian."""
    if isinstance(policy, SquashedGaussian):
        zeros = np.zeros_like(policy.mean)
        return divergence(policy, SquashedGaussian(zeros, zeros))
    log_pi = log_softmax(policy.logits)
    return (np.exp(log_pi) * log_pi).sum(axis=-1)


def divergence(policy: Any, old: Any) -> np.ndarray:
    """KL(policy, old)."""
    if not isinstance(policy, SquashedGaussian):
        log_pi = log_softmax(policy.logits)
        return (np.exp(log_pi) * (log_pi - log_softmax(old.logits))).sum(axis=-1)
    sigma, of_old = np.exp(policy.log_sigma), np.exp(old.log_sigma)
    each = np.log(of_old / sigma) - 0.5
    each = each + (sigma**2 + (policy.mean - old.mean) ** 2) / (2 * of_old**2)
    return each.sum(axis=-1)


def outputs_of(update: ImpalaUpdate, batch: Batch, b: int) -> tuple[np.ndarray, np.ndarray]:
    """log π of every action, and every value output, on every row of unroll b, step by step."""
    state = tree.map_structure(lambda x: x[b : b + 1], batch.core_state)
    log_pi, values = [], []
    for t in range(len(batch.reset)):
        if batch.reset[t, b]:
            state = update.learned_network.initial_state(1)
        row = tree.map_structure(lambda x, t=t: x[t, b : b + 1], batch.inputs)
        output, state = update.learned_network.step(row, state)
        log_pi.append(tf.nn.log_softmax(output.policy.logits[0]).numpy())
        values.append(output.value[0].numpy())
    return np.stack(log_pi), np.stack(values)


def loss_of_batch(
    update: ImpalaUpdate,
    batch: Batch,
    config: Config,
    shift: Any = 0.0,
    scale: Any = 1.0,
    tasks: Sequence[int] = (0,) * 4,
) -> tuple[float, np.ndarray]:
    """A batch's loss and unnormalised targets `[L, B]`, NaN where masked.

    Args:
      shift, scale: of each unroll's value, whose output is that of its task.
    """
    pairs = [outputs_of(update, batch, b) for b in range(len(tasks))]
    log_pi = np.stack([x for x, _ in pairs], axis=1)[config.burn_in : -1]
    n = np.stack([x[:, task] for task, (_, x) in zip(tasks, pairs, strict=True)], axis=1)
    outputs = Outputs(Categorical(log_pi), n[config.burn_in :], shift, scale)
    rows = TrainedRows(*(x.numpy() for x in batch.trained(config.burn_in)))
    ratio = np.exp(log_ratio(outputs, rows))[rows.mask > 0]
    assert (ratio > config.rho_bar).any()
    assert (ratio < config.c_bar).any()
    return losses(outputs, rows, fixed_hyperparameters(config), config.correction)
