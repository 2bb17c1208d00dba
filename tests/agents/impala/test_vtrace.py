"""V-trace and the other corrections against a quadratic oracle that straddles both clips."""

from collections.abc import Callable
from typing import get_args

import numpy as np
import pytest
import tensorflow as tf

from agents.impala.vtrace import (
    Correction,
    Returns,
    Weights,
    corrected_log_probability,
    importance_weights,
    vtrace_returns,
)
from tests.agents.impala import oracle
from tests.agents.impala.oracle import Unrolls, random_unrolls

T, B = 9, 20
UNROLLS = random_unrolls(T, B)
LEVELS = [(1.0, 1.0, 1.0), (2.0, 1.0, 1.0), (2.0, 0.5, 0.7), (np.inf, 2.0, 0.95)]


def _returns(
    unrolls: Unrolls, correction: Correction, rho_bar: float, c_bar: float, lambda_: float
) -> tuple[Weights, Returns]:
    value, reward, discount, log_ratio, mask = (tf.constant(x) for x in unrolls)
    weights = importance_weights(
        log_ratio, correction, rho_bar=rho_bar, c_bar=c_bar, lambda_=lambda_
    )
    return weights, vtrace_returns(value, reward, discount, weights, mask)


def _on_policy(unrolls: Unrolls) -> Returns:
    return _returns(unrolls._replace(log_ratio=0 * unrolls.log_ratio), "vtrace", 1.0, 1.0, 1.0)[1]


def test_the_unrolls_reach_both_sides_of_every_clip_and_every_kind_of_row() -> None:
    ratio = np.exp(UNROLLS.log_ratio)[UNROLLS.mask > 0]
    for bar in (0.5, 1.0, 2.0):
        assert 10 < (ratio > bar).sum() < ratio.size - 10
    inner = UNROLLS.mask[1:-1]
    assert (inner == 0).sum() > 5
    assert (UNROLLS.discount == 0).sum() > 5
    assert (UNROLLS.mask[-1] == 1).any()
    assert (UNROLLS.mask[-1] == 0).any()


@pytest.mark.parametrize("wrap", [lambda f: f, tf.function], ids=["eager", "traced"])
@pytest.mark.parametrize("levels", LEVELS, ids=str)
@pytest.mark.parametrize("correction", get_args(Correction))
def test_every_correction_equals_the_oracle(
    correction: Correction, levels: tuple[float, float, float], wrap: Callable
) -> None:
    weights, returns = wrap(lambda: _returns(UNROLLS, correction, *levels))()
    rho, c, policy = oracle.weights(UNROLLS.log_ratio, correction, *levels)
    np.testing.assert_allclose(weights.policy, policy, rtol=1e-5)
    v, q = oracle.returns(UNROLLS, rho, c)
    real = UNROLLS.mask > 0
    np.testing.assert_allclose(returns.value[real], v[real], atol=1e-4, rtol=1e-4)
    np.testing.assert_allclose(returns.q[real], q[real], atol=1e-4, rtol=1e-4)
    for x in returns:
        np.testing.assert_array_equal(x[~real], UNROLLS.value[:-1][~real])


@pytest.mark.parametrize("terminated", [False, True])
def test_an_end_inside_an_unroll(terminated: bool) -> None:
    """Rows a b L c: a time limit bootstraps on L, its last observation; a terminal on nothing."""
    end = 0.0 if terminated else 0.5
    unrolls = Unrolls(
        value=np.array([[0.0], [0.0], [8.0], [100.0], [200.0]], np.float32),
        reward=np.array([[1.0], [1.0], [99.0], [1.0]], np.float32),
        discount=np.array([[0.5], [end], [99.0], [0.5]], np.float32),
        log_ratio=np.zeros((4, 1), np.float32),
        mask=np.array([[1.0], [1.0], [0.0], [1.0]], np.float32),
    )
    returns = _on_policy(unrolls)
    b = 1.0 + end * 8.0
    np.testing.assert_allclose(returns.value[:, 0], [1.0 + 0.5 * b, b, 8.0, 101.0])
    np.testing.assert_allclose(returns.q[:, 0], [1.0 + 0.5 * b, b, 8.0, 101.0])


@pytest.mark.parametrize("correction", get_args(Correction))
def test_only_the_epsilon_correction_bounds_the_log_probability(correction: Correction) -> None:
    """A density may be beyond float32."""
    log_pi = tf.constant([-100.0, np.log(1e-6), -1.0, 147.0])
    actual = corrected_log_probability(log_pi, correction)
    expected = log_pi.numpy()
    if correction == "epsilon":
        expected = np.log([1e-6, 2e-6, np.exp(-1.0) + 1e-6, np.exp(147.0)])
    np.testing.assert_allclose(actual, expected, rtol=1e-5)
