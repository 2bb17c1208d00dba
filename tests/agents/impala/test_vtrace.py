"""V-trace, leaky too, and other corrections against a quadratic oracle that straddles all clips."""

from collections.abc import Callable
from typing import Any, get_args

import numpy as np
import pytest
import tensorflow as tf

from agents.impala.vtrace import (
    MAX_WEIGHT,
    Correction,
    Hyperparameters,
    Returns,
    Weights,
    corrected_log_probability,
    importance_weights,
    vtrace_returns,
)
from tests.agents.impala import oracle
from tests.agents.impala.oracle import random_unrolls

T, B = 9, 20
UNROLLS = random_unrolls(T, B)
RHO_BAR, C_BAR, LAMBDA = 1.5, 0.8, 0.9
# ρ̄, c̄, λ, and how leaky both clips are: 1 is not at all.
LEVELS = [
    *[(1.0, 1.0, 1.0, 1.0, 1.0), (2.0, 1.0, 1.0, 1.0, 1.0), (2.0, 0.5, 0.7, 1.0, 1.0)],
    (np.inf, 2.0, 0.95, 1.0, 1.0),
    *[(RHO_BAR, C_BAR, LAMBDA, *alphas) for alphas in ((0.0, 0.0), (0.6, 0.2), (0.2, 1.0))],
]
# The other corrections have λ alone for traces, and ρ is V-trace's.
CASES = [(c, x) for c in get_args(Correction) for x in (LEVELS if c == "vtrace" else LEVELS[2::4])]


def _weigh(
    log_ratio: tf.Tensor, correction: Correction, rho: Any, c: Any, lambda_: Any, *alphas: Any
) -> Weights:
    """The importance weights of ρ̄, c̄, λ, α_ρ and α_c, of which they are made alone."""
    return importance_weights(
        log_ratio, correction, Hyperparameters(np.nan, lambda_, rho, c, *[np.nan] * 3, *alphas)
    )


def test_the_unrolls_reach_both_sides_of_every_clip_and_every_kind_of_row() -> None:
    ratio = np.exp(UNROLLS.log_ratio)[UNROLLS.mask > 0]
    for bar in (0.5, C_BAR, 1.0, RHO_BAR, 2.0):
        assert 10 < (ratio > bar).sum() < ratio.size - 10
    inner = UNROLLS.mask[1:-1] == 0
    for terminated in (True, False):  # before an episode's last observation
        assert (inner & ((UNROLLS.discount[:-2] == 0) == terminated)).sum() > 1
    assert (UNROLLS.mask[-1] == 1).any()
    assert (UNROLLS.mask[-1] == 0).any()


@pytest.mark.parametrize(
    ("correction", "levels", "wrap", "dtype", "tolerance"),
    [
        *((*case, lambda f: f, tf.float64, 1e-9) for case in CASES),
        *((*case, tf.function, tf.float32, 1e-4) for case in CASES[1::2]),
    ],
)
def test_every_correction_equals_the_oracle(
    correction: Correction,
    levels: tuple[float, ...],
    wrap: Callable,
    dtype: tf.DType,
    tolerance: float,
) -> None:
    close: dict[str, Any] = dict(rtol=tolerance, atol=tolerance)

    def run() -> tuple[Weights, Returns]:
        value, reward, discount, log_ratio, mask = (tf.constant(x, dtype) for x in UNROLLS)
        weights = _weigh(log_ratio, correction, *levels)
        return weights, vtrace_returns(value, reward, discount, weights, mask)

    weights, returns = wrap(run)()
    rho, c, policy = oracle.weights(UNROLLS.log_ratio, correction, *levels)
    for actual, expected in zip(weights, (rho, c, policy), strict=True):
        np.testing.assert_allclose(actual, expected, **close)
    v, q = oracle.returns(UNROLLS, rho, c)
    real = UNROLLS.mask > 0
    np.testing.assert_allclose(returns.value[real], v[real], **close)
    np.testing.assert_allclose(returns.q[real], q[real], **close)
    for x in returns:
        np.testing.assert_array_equal(x[~real], UNROLLS.value[:-1][~real])


@pytest.mark.parametrize("correction", get_args(Correction))
def test_only_the_epsilon_correction_bounds_the_log_probability(correction: Correction) -> None:
    """A density may be beyond float32."""
    log_pi = tf.constant([-100.0, np.log(1e-6), -1.0, 147.0])
    actual = corrected_log_probability(log_pi, correction)
    expected = log_pi.numpy()
    if correction == "epsilon":
        expected = np.log([1e-6, 2e-6, np.exp(-1.0) + 1e-6, np.exp(147.0)])
    np.testing.assert_allclose(actual, expected, rtol=1e-5)


EXTREMES = np.array([-1e4, -147, -88, 3, 12, 88.7, 89, 147, 1e4], np.float32)[:, np.newaxis]


@pytest.mark.parametrize("kind", [float, tf.constant])
@pytest.mark.parametrize("alpha", [0.0, 0.4, 1.0])
@pytest.mark.parametrize("correction", get_args(Correction))
def test_ratios_beyond_float32_weigh_no_more_than_can_be_felt(
    correction: Correction, alpha: float, kind: Callable
) -> None:
    """As in float64, but for the bound; a ratio far above another has all the weight either way."""
    bounded = np.minimum(EXTREMES.astype(np.float64), np.log(MAX_WEIGHT))
    bars = (RHO_BAR, C_BAR, LAMBDA)
    levels = (*bars, kind(alpha), kind(alpha))
    weights = _weigh(tf.constant(EXTREMES), correction, *levels)
    for actual, expected in zip(
        weights, oracle.weights(bounded, correction, *bars, alpha, alpha), strict=True
    ):
        np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-35)
    rows = EXTREMES[[3, 7]]  # 20 and beyond 10^63
    weights = _weigh(tf.constant(rows), correction, *levels)
    for actual, expected in zip(
        weights, oracle.weights(rows, correction, *bars, alpha, alpha), strict=True
    ):
        np.testing.assert_allclose(actual[0] / actual[1], expected[0] / expected[1], atol=1e-3)


def test_no_row_weighs_more_in_a_target_than_can_be_felt() -> None:
    """The weights are derivatives of targets by rewards; a loop's, unless it exceeds the bound."""
    log_ratio = (UNROLLS.log_ratio * 8).astype(np.float32)
    value, reward, discount, log_ratios, mask = map(
        tf.constant, UNROLLS._replace(log_ratio=log_ratio)
    )
    levels = (RHO_BAR, C_BAR, LAMBDA, tf.constant(0.3), tf.constant(0.2))
    weights = _weigh(log_ratios, "vtrace", *levels)
    with tf.GradientTape() as tape:
        tape.watch(reward)
        targets = vtrace_returns(value, reward, discount, weights, mask).value
    actual = tf.einsum("sbtb->bst", tape.jacobian(targets, reward)).numpy()
    assert actual.max() == pytest.approx(MAX_WEIGHT, rel=1e-5)
    rho, c = (x.numpy().astype(np.float64) for x in (weights.delta, weights.trace))
    in_bounds = 0
    for b in range(B):
        for s in range(T):
            exact = [_weight(rho[:, b], c[:, b], b, s, t) for t in range(s, T)]
            later = [_weight(rho[:, b], c[:, b], b, i, t) for i in range(s, T) for t in range(i, T)]
            if max(later) < MAX_WEIGHT:
                np.testing.assert_allclose(actual[b, s, s:], exact, rtol=1e-4)
                in_bounds += 1
    assert 20 < in_bounds < T * B - 20


def _weight(rho: np.ndarray, c: np.ndarray, b: int, s: int, t: int) -> float:
    """The weight of row t in the target of row s; 0 beyond the episode's end."""
    if not UNROLLS.mask[s : t + 1, b].all():
        return 0.0
    return float(np.prod(UNROLLS.discount[s:t, b] * c[s:t]) * rho[t])
