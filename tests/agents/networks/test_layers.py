"""Layers: against Sonnet's, in both precisions."""

from typing import Any

import numpy as np
import pytest
import sonnet as snt
import tensorflow as tf

from agents.networks.layers import Conv2D, Linear
from tests.tensor_ops.numbers import HALF_STEP, normal

Layer = Linear | Conv2D


def _variables(layer: snt.Module) -> dict[str, tf.Variable]:
    return {v.name.split("/")[-1]: v for v in layer.trainable_variables}


def _set(layer: snt.Module, w: tf.Tensor, b: tf.Tensor) -> None:
    variables = _variables(layer)
    variables["w:0"].assign(w)
    variables["b:0"].assign(b)


def _randomise(layer: snt.Module, *others: snt.Module) -> None:
    """Gives layers that have been called the same variables; no bias is 0."""
    shapes = {name: v.shape for name, v in _variables(layer).items()}
    w, b = normal(*shapes["w:0"], seed=1), normal(*shapes["b:0"], seed=2)
    for each in (layer, *others):
        _set(each, w, b)


def _gradients(layer: Any, x: tf.Tensor) -> dict[str, tf.Tensor]:
    """The gradients of the weighted sum of the outputs, by variables and inputs."""
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = layer(x)
        loss = tf.reduce_sum(normal(*y.shape, seed=3) * tf.cast(y, tf.float32))
    return tape.gradient(loss, {**_variables(layer), "x": x})


def _assert_same_gradients(ours: snt.Module, theirs: snt.Module, x: tf.Tensor) -> None:
    actual, expected = _gradients(ours, x), _gradients(theirs, x)
    assert set(actual) == {"w:0", "b:0", "x"}
    for name in actual:
        np.testing.assert_allclose(actual[name], expected[name], rtol=1e-4, atol=1e-4)


def test_linear_equals_sonnets() -> None:
    ours, theirs, x = Linear(4), snt.Linear(4), normal(6, 3)
    assert ours(x).shape == theirs(x).shape == (6, 4)
    _randomise(ours, theirs)
    np.testing.assert_allclose(ours(x), theirs(x), atol=1e-5)
    _assert_same_gradients(ours, theirs, x)


@pytest.mark.parametrize("padding", ["VALID", "SAME"])
@pytest.mark.parametrize(("kernel", "stride"), [(1, 1), (3, 1), (3, 2), (4, 2), (8, 4)])
def test_conv2d_equals_sonnets(kernel: int, stride: int, padding: str) -> None:
    ours = Conv2D(4, kernel, stride, padding=padding)
    theirs = snt.Conv2D(4, kernel, stride, padding=padding)
    x = normal(2, 11, 14, 3)  # no side is a multiple of every stride
    assert ours(x).shape == theirs(x).shape
    _randomise(ours, theirs)
    np.testing.assert_allclose(ours(x), theirs(x), atol=1e-4)
    _assert_same_gradients(ours, theirs, x)


def test_initial_weights_have_sonnets_scale() -> None:
    tf.random.set_seed(0)
    layers: list[tuple[Layer, tf.Tensor, int]] = [
        (Linear(100), tf.zeros([1, 400]), 400),
        (Conv2D(64, 5), tf.zeros([1, 1, 1, 16]), 5 * 5 * 16),
    ]
    for layer, x, num_inputs in layers:
        layer(x)
        w, b = sorted((v.numpy() for v in layer.trainable_variables), key=np.ndim, reverse=True)
        # A normal distribution cut off at two standard deviations has 0.88 of its deviation left.
        assert np.std(w) == pytest.approx(0.88 * num_inputs**-0.5, rel=0.02)
        assert np.abs(w).max() <= 2.0 * num_inputs**-0.5
        assert (b == 0).all()


def _layers(dtype: tf.DType) -> list[tuple[Layer, tf.Tensor]]:
    return [
        (Linear(5, dtype=dtype), normal(7, 16)),
        (Conv2D(5, 3, 2, dtype=dtype), normal(2, 7, 6, 4)),
        (Conv2D(5, 3, 2, padding="VALID", dtype=dtype), normal(2, 7, 6, 4)),
    ]


@pytest.mark.parametrize("case", range(3), ids=["linear", "same", "valid"])
def test_bfloat16_stays_within_its_rounding(case: int) -> None:
    (layer, x), (exact, _) = _layers(tf.bfloat16)[case], _layers(tf.float32)[case]
    layer(x)
    exact(x)
    _randomise(layer, exact)
    y, expected = layer(x), exact(x)
    assert y.dtype == tf.bfloat16
    assert expected.dtype == tf.float32
    assert all(v.dtype == tf.float32 for v in layer.trainable_variables)
    actual, wanted = _gradients(layer, x), _gradients(exact, x)
    for name in wanted:
        assert actual[name].dtype == tf.float32
        distance = tf.norm(actual[name] - wanted[name]) / tf.norm(wanted[name])
        assert 0 < float(distance) < 2 * HALF_STEP
    # Rounding may move each factor of a product, the sum of all, and what the bias makes of it.
    error = np.abs(tf.cast(y, tf.float32) - expected)
    _set(exact, tf.abs(_variables(exact)["w:0"]), tf.abs(_variables(exact)["b:0"]))
    of_sizes = exact(tf.abs(x))
    assert (error <= 4.1 * HALF_STEP * of_sizes.numpy()).all()
    # More than the outputs alone have been rounded.
    assert (error > 1.01 * HALF_STEP * np.abs(expected)).any()


@pytest.mark.parametrize(
    ("layer", "shape"),
    [(Linear(3, dtype=tf.bfloat16), (6_000, 2)), (Conv2D(3, 1, dtype=tf.bfloat16), (6, 40, 25, 2))],
    ids=["linear", "conv2d"],
)
def test_the_bias_gradient_is_summed_in_float32(layer: Layer, shape: tuple[int, ...]) -> None:
    """A sum in bfloat16 no longer grows by 1 when it has come to 256."""
    x = tf.cast(normal(*shape), tf.bfloat16)
    rng = np.random.default_rng(4)
    of_y = tf.constant(rng.uniform(0.5, 1.5, size=(*shape[:-1], 3)), tf.bfloat16)
    layer(x)
    with tf.GradientTape() as tape:
        y = layer(x)
    of_bias = tape.gradient(y, _variables(layer)["b:0"], output_gradients=of_y)
    terms = tf.reshape(of_y, [-1, 3])
    in_bfloat16 = tf.zeros([3], tf.bfloat16)
    for term in terms[:1_000]:
        in_bfloat16 += term
    assert (tf.cast(in_bfloat16, tf.float32).numpy() < 0.6 * 1_000).all()
    expected = tf.cast(terms, tf.float64).numpy().sum(axis=0)
    assert of_bias.dtype == tf.float32
    np.testing.assert_allclose(of_bias, expected, rtol=HALF_STEP)
