"""The squashed Gaussian against tensorflow-probability, and against differences, in float32."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_probability as tfp
from acme import specs

from agents.impala.distributions import SquashedGaussian, log_slope, squashed, squashed_gaussian

D = 3
tfd, tfb = tfp.distributions, tfp.bijectors


def _gaussian(seed: int, *shape: int, dtype: type = np.float32) -> SquashedGaussian:
    rng = np.random.default_rng(seed)
    shape = (*shape, D)
    mean, log_sigma = np.tanh(rng.normal(size=shape)), rng.uniform(-5, 2, size=shape)
    return SquashedGaussian(tf.constant(mean, dtype), tf.constant(log_sigma, dtype))


def _theirs(policy: SquashedGaussian) -> Any:
    """The Gaussian in float64."""
    mean, log_sigma = (tf.cast(x, tf.float64) for x in policy)
    return tfd.MultivariateNormalDiag(mean, tf.exp(log_sigma))


def _actions() -> np.ndarray:
    """u `[8, 5, D]`: |tanh u| is above 0.9999 in a third, and rounds to 1 in some."""
    u = np.random.default_rng(1).normal(size=(8, 5, D)) * 2
    u[::3] = np.sign(u[::3]) * np.random.default_rng(2).uniform(5.0, 20.0, size=u[::3].shape)
    return u.astype(np.float32)


@pytest.mark.parametrize("wrap", [lambda f: f, tf.function], ids=["eager", "traced"])
def test_the_log_probability_is_that_of_tensorflow_probability(wrap: Callable) -> None:
    policy, u = _gaussian(0, 8, 5), _actions()
    actual = wrap(lambda: policy.log_probability(tf.constant(u)))()
    squasher = tfb.Tanh()
    exact = tf.constant(u, tf.float64)
    slope = tf.reduce_sum(squasher.forward_log_det_jacobian(exact, event_ndims=0), axis=-1)
    expected = _theirs(policy).log_prob(exact) - slope
    assert actual.dtype == tf.float32
    np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-4)
    # Their distribution of tanh(u) itself agrees, where float64 can still invert it.
    within = (np.abs(u) < 9).all(axis=-1)
    whole = tfd.TransformedDistribution(_theirs(policy), squasher).log_prob(tf.tanh(exact))
    np.testing.assert_allclose(np.array(actual)[within], whole[within], rtol=1e-4, atol=1e-3)
    assert 10 < within.sum() < within.size


@pytest.mark.parametrize("u", [-30.0, -9.5, -5.0, -0.1, 0.0, 2.0, 6.0, 12.0, 80.0])
def test_the_slope_of_the_squashing_close_to_the_bounds(u: float) -> None:
    expected = 2 * (np.log(2.0) - abs(u) - np.log1p(np.exp(-2 * abs(u))))
    x = tf.constant(u)
    with tf.GradientTape() as tape:
        tape.watch(x)
        actual = log_slope(x)
    assert float(actual) == pytest.approx(expected, rel=1e-6, abs=1e-6)
    assert float(tape.gradient(actual, x)) == pytest.approx(-2 * np.tanh(u), abs=1e-6)


def test_the_regularisation_is_the_divergence_from_the_standard_gaussian() -> None:
    policy = _gaussian(0, 8, 5)
    standard = tfd.MultivariateNormalDiag(tf.zeros(D, tf.float64), tf.ones(D, tf.float64))
    expected = tfd.kl_divergence(_theirs(policy), standard)
    np.testing.assert_allclose(policy.regularisation(), expected, rtol=1e-5)
    same = SquashedGaussian(tf.zeros([2, D]), tf.zeros([2, D]))
    np.testing.assert_array_equal(same.regularisation(), [0, 0])


def test_the_divergence_from_another_policy() -> None:
    policy, other = _gaussian(0, 8, 5), _gaussian(1, 8, 5)
    expected = tfd.kl_divergence(_theirs(policy), _theirs(other))
    np.testing.assert_allclose(policy.divergence(other), expected, rtol=1e-4)
    assert not np.allclose(expected, tfd.kl_divergence(_theirs(other), _theirs(policy)), rtol=0.1)
    np.testing.assert_allclose(policy.divergence(policy), tf.zeros([8, 5]), atol=1e-5)


def _of_outputs(outputs: tf.Tensor, which: str) -> tf.Tensor:
    policy = squashed_gaussian(outputs, -5.0, 2.0)
    if which == "log_probability":
        return policy.log_probability(tf.constant(_actions(), outputs.dtype))
    if which == "regularisation":
        return policy.regularisation()
    return policy.divergence(_gaussian(5, 8, 5, dtype=outputs.dtype.as_numpy_dtype))


@pytest.mark.parametrize("which", ["log_probability", "regularisation", "divergence"])
def test_gradients_by_the_networks_outputs_are_differences(which: str) -> None:
    """In float32, against central differences in float64, at actions by the bounds too."""
    outputs = np.random.default_rng(4).normal(size=(8, 5, 2 * D))
    x = tf.constant(outputs, tf.float32)
    with tf.GradientTape() as tape:
        tape.watch(x)
        total = tf.reduce_sum(_of_outputs(x, which))
    actual, step = tape.gradient(total, x), 1e-5
    for i in range(2 * D):
        ends = [
            _of_outputs(tf.constant(outputs + sign * step * np.eye(2 * D)[i]), which)
            for sign in (-1, 1)
        ]
        expected = (ends[1] - ends[0]) / (2 * step)
        scale = np.abs(expected).max()
        np.testing.assert_allclose(actual[..., i], expected, rtol=1e-3, atol=1e-5 * scale)


def test_draws_are_gaussian_and_follow_the_generator_alone() -> None:
    policy = SquashedGaussian(
        tf.tile([[0.5, -0.2]], [40_000, 1]), tf.tile([[0.0, -2.0]], [40_000, 1])
    )
    u = policy.sample(tf.random.Generator.from_seed(0)).numpy()
    np.testing.assert_allclose(u.mean(axis=0), [0.5, -0.2], atol=0.02)
    np.testing.assert_allclose(u.std(axis=0), np.exp([0, -2]), rtol=0.02)
    assert abs(np.corrcoef(u.T)[0, 1]) < 0.02
    np.testing.assert_array_equal(u, policy.sample(tf.random.Generator.from_seed(0)))
    assert (u != policy.sample(tf.random.Generator.from_seed(1)).numpy()).any()
    np.testing.assert_array_equal(
        policy.for_evaluation(tf.random.Generator.from_seed(0)), policy.mean
    )


def test_the_networks_outputs_stay_within_their_ranges() -> None:
    """Means come first, as checkpoints have learned it."""
    outputs = tf.constant([[-100.0, 0.0, 100.0, 100.0, 0.0, -100.0]])
    policy = squashed_gaussian(outputs, -5.0, 2.0)
    np.testing.assert_allclose(policy.mean[0], [-1, 0, 1])
    np.testing.assert_allclose(policy.log_sigma[0], [2, -1.5, -5])


def test_what_the_environment_is_given() -> None:
    actions = specs.BoundedArray((3,), np.float32, [-1, 0, -3e38], [1.1, 8, 3e38])
    u = np.array([[0, 0, 0], [-50, -50, -50], [50, 50, 50], [0.5, 9.1, -9.1]], np.float32)
    given = squashed(u, actions)
    assert given.dtype == np.float32
    np.testing.assert_allclose(given[0], [0.05, 4, 0], rtol=1e-6)
    np.testing.assert_array_equal(given[1], np.float32(actions.minimum))
    np.testing.assert_array_equal(given[2], np.float32(actions.maximum))
    assert given[3, 0] == pytest.approx(-1 + 2.1 * (np.tanh(0.5) + 1) / 2, rel=1e-6)
    for row in given:
        actions.replace(minimum=np.float32(actions.minimum)).validate(row)


def test_no_rounding_oversteps_a_bound() -> None:
    low, high = np.array([[0.1, 0.3], [0.1, 0.31]], np.float32)
    actions = specs.BoundedArray((2,), np.float32, low, high)
    u = np.linspace(-10, 10, 20_001, dtype=np.float32)[:, np.newaxis].repeat(2, axis=1)
    for each in (u, tf.constant(u)):
        given = np.asarray(squashed(each, actions))
        assert ((low <= given) & (given <= high)).all()
