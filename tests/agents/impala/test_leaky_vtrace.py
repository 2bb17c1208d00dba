"""Leaky V-trace (Zahavy et al. 2020, Section 3.1) between V-trace and importance sampling."""

import numpy as np
import pytest
import tensorflow as tf

from agents.impala.vtrace import Returns, Weights, importance_weights, vtrace_returns
from tests.agents.impala import oracle
from tests.agents.impala.oracle import random_unrolls

T, B = 9, 20
UNROLLS = random_unrolls(T, B)
RHO_BAR, C_BAR, LAMBDA = 1.5, 0.8, 0.9


def _leaky(
    alpha_rho: float, alpha_c: float, rho_bar: float = RHO_BAR, c_bar: float = C_BAR
) -> tuple[Weights, Returns]:
    value, reward, discount, log_ratio, mask = (tf.constant(x, tf.float64) for x in UNROLLS)
    weights = importance_weights(
        log_ratio,
        "vtrace",
        rho_bar=rho_bar,
        c_bar=c_bar,
        lambda_=LAMBDA,
        alpha_rho=alpha_rho,
        alpha_c=alpha_c,
    )
    return weights, vtrace_returns(value, reward, discount, weights, mask)


@pytest.mark.parametrize("alphas", [(0.0, 0.0), (0.3, 0.3), (0.6, 0.2), (0.2, 1.0), (1.0, 1.0)])
def test_it_equals_the_oracle(alphas: tuple[float, float]) -> None:
    real = UNROLLS.mask > 0
    ratio = np.exp(UNROLLS.log_ratio)[real]
    for bar in (RHO_BAR, C_BAR):
        assert 10 < (ratio > bar).sum() < ratio.size - 10
    weights, returns = _leaky(*alphas)
    rho, c, policy = oracle.weights(UNROLLS.log_ratio, "vtrace", RHO_BAR, C_BAR, LAMBDA, *alphas)
    for actual, expected in zip(weights, (rho, c, policy), strict=True):
        np.testing.assert_allclose(actual, expected, rtol=1e-9)
    v, q = oracle.returns(UNROLLS, rho, c)
    np.testing.assert_allclose(returns.value[real], v[real], rtol=1e-9)
    np.testing.assert_allclose(returns.q[real], q[real], rtol=1e-9)


@pytest.mark.parametrize(("alpha", "bars"), [(1.0, (RHO_BAR, C_BAR)), (0.0, (np.inf, np.inf))])
def test_its_ends_are_vtrace_and_importance_sampling(
    alpha: float, bars: tuple[float, float]
) -> None:
    """As tensors too, of which nobody can tell that they are 1."""
    ends = _leaky(1.0, 1.0, *bars)
    for leaky in (_leaky(alpha, alpha), _leaky(*[tf.constant(alpha, tf.float64)] * 2)):
        for xs, ys in zip(leaky, ends, strict=True):
            for x, y in zip(xs, ys, strict=True):
                np.testing.assert_allclose(x, y, rtol=1e-12)


def test_one_alpha_keeps_rho_above_c_and_the_printed_inequality_does_not() -> None:
    """The proof needs ρ ≥ c. Of equal clips ρ falls as α_ρ rises: α_ρ ≥ α_c is the wrong way."""
    for alpha in (0.0, 0.4, 1.0):
        rho, c, _ = _leaky(alpha, alpha, 1.0, 1.0)[0]
        assert (rho * LAMBDA >= c - 1e-12).numpy().all()
    rho, c, _ = _leaky(0.9, 0.1, 1.0, 1.0)[0]
    assert (rho * LAMBDA < c - 1e-3).numpy().any()
    rho, c, _ = _leaky(0.1, 0.9, 1.0, 1.0)[0]
    assert (rho * LAMBDA >= c - 1e-12).numpy().all()


def test_an_infinite_ratio_is_truncated_by_an_alpha_of_1() -> None:
    log_ratio = tf.constant([[1e4]])
    options = dict(rho_bar=1.0, c_bar=1.0, lambda_=1.0)
    truncated = importance_weights(log_ratio, "vtrace", **options)
    assert float(truncated.delta) == float(truncated.trace) == 1.0
    leaking = importance_weights(log_ratio, "vtrace", **options, alpha_rho=0.5, alpha_c=0.5)
    assert float(leaking.delta) == np.inf
