"""Layers: against Sonnet's, in both precisions."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import sonnet as snt
import tensorflow as tf

from agents.networks import convolution, layers, tiles, vector_code
from agents.networks.convolution import Conv2D, convolve
from agents.networks.layers import (
    Linear,
    add_beside,
    add_bias,
    as_float,
    of_sum,
    relu,
    relu_beside,
)
from agents.networks.loops import sums_of_parts
from agents.networks.pooling import max_pool
from tests.agents.networks.vectors import lanes

HALF_STEP = 2.0**-8  # by which rounding to bfloat16 moves a number, relative to it, at most

Layer = Linear | Conv2D


def _normal(*shape: int, seed: int = 0) -> tf.Tensor:
    return tf.constant(np.random.default_rng(seed).normal(size=shape), tf.float32)


def _variables(layer: snt.Module) -> dict[str, tf.Variable]:
    return {v.name.split("/")[-1]: v for v in layer.trainable_variables}


def _set(layer: snt.Module, w: tf.Tensor, b: tf.Tensor) -> None:
    variables = _variables(layer)
    variables["w:0"].assign(w)
    variables["b:0"].assign(b)


def _randomise(layer: snt.Module, *others: snt.Module) -> None:
    """Gives layers that have been called the same variables; no bias is 0."""
    shapes = {name: v.shape for name, v in _variables(layer).items()}
    w, b = _normal(*shapes["w:0"], seed=1), _normal(*shapes["b:0"], seed=2)
    for each in (layer, *others):
        _set(each, w, b)


def _gradients(layer: Any, x: tf.Tensor) -> dict[str, tf.Tensor]:
    """Of the sum of the outputs, each weighted: by variables and inputs."""
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = layer(x)
        loss = tf.reduce_sum(_normal(*y.shape, seed=3) * tf.cast(y, tf.float32))
    return tape.gradient(loss, {**_variables(layer), "x": x})


def _assert_same_gradients(ours: snt.Module, theirs: snt.Module, x: tf.Tensor) -> None:
    actual, expected = _gradients(ours, x), _gradients(theirs, x)
    assert set(actual) == {"w:0", "b:0", "x"}
    for name in actual:
        np.testing.assert_allclose(actual[name], expected[name], rtol=1e-4, atol=1e-4)


def test_linear_equals_sonnets() -> None:
    ours, theirs, x = Linear(4), snt.Linear(4), _normal(6, 3)
    assert ours(x).shape == theirs(x).shape == (6, 4)
    _randomise(ours, theirs)
    np.testing.assert_allclose(ours(x), theirs(x), atol=1e-5)
    _assert_same_gradients(ours, theirs, x)


@pytest.mark.parametrize("padding", ["VALID", "SAME"])
@pytest.mark.parametrize(("kernel", "stride"), [(1, 1), (3, 1), (3, 2), (4, 2), (8, 4)])
def test_conv2d_equals_sonnets(kernel: int, stride: int, padding: str) -> None:
    ours = Conv2D(4, kernel, stride, padding=padding)
    theirs = snt.Conv2D(4, kernel, stride, padding=padding)
    x = _normal(2, 11, 14, 3)  # no side is a multiple of every stride
    assert ours(x).shape == theirs(x).shape
    _randomise(ours, theirs)
    np.testing.assert_allclose(ours(x), theirs(x), atol=1e-4)
    _assert_same_gradients(ours, theirs, x)


@pytest.mark.parametrize("dtype", [tf.float32, tf.bfloat16])
def test_bytes_are_read_as_fractions_of_255(dtype: tf.DType) -> None:
    x = np.arange(256, dtype=np.uint8)
    fractions = as_float(x, dtype)
    assert fractions.dtype == dtype
    rounding = 1e-6 if dtype == tf.float32 else HALF_STEP
    np.testing.assert_allclose(tf.cast(fractions, tf.float32), x / 255, rtol=rounding)
    assert [float(fractions[i]) for i in (0, 255)] == [0.0, 1.0]


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


def test_initial_weights_can_be_given() -> None:
    eighths = snt.initializers.Constant(0.125)
    x = tf.ones([1, 2, 2, 3])
    assert float(Conv2D(1, 2, padding="VALID", w_init=eighths)(x)) == 2 * 2 * 3 / 8
    assert float(Linear(1, w_init=eighths)(x[0, 0, :1])) == 3 / 8


AROUND_0 = tf.constant([-2.0, -1e-30, -0.0, 0.0, 1e-30, 3.0])


@pytest.mark.parametrize("dtype", [tf.float32, tf.bfloat16])
def test_relu_and_its_gradient_around_0(dtype: tf.DType) -> None:
    x = tf.cast(AROUND_0, dtype)
    assert np.signbit(tf.cast(x, tf.float32)).tolist() == [True] * 3 + [False] * 3
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = relu(x)
    of_x = tape.gradient(y, x, output_gradients=tf.cast(tf.range(1, 7), dtype))
    assert y.dtype == of_x.dtype == dtype
    np.testing.assert_array_equal(y, tf.nn.relu(x))
    np.testing.assert_array_equal(tf.cast(of_x, tf.float32), [0.0, 0.0, 0.0, 0.0, 5.0, 6.0])


@pytest.mark.parametrize("dtype", [tf.float32, tf.bfloat16])
def test_what_passes_beside_a_relu_adds_its_gradient(dtype: tf.DType) -> None:
    x = tf.cast(AROUND_0, dtype)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y, beside = relu_beside(x)
    given = [tf.cast(tf.range(1, 7), dtype), tf.cast(10 * tf.range(1, 7), dtype)]
    of_x = tape.gradient([y, beside], x, output_gradients=given)
    assert y.dtype == beside.dtype == of_x.dtype == dtype
    np.testing.assert_array_equal(y, tf.nn.relu(x))
    np.testing.assert_array_equal(beside, x)
    np.testing.assert_array_equal(tf.cast(of_x, tf.float32), [10, 20, 30, 40, 55, 66])


@pytest.mark.parametrize("wrap", [lambda f: f, tf.function], ids=["eager", "traced"])
@pytest.mark.parametrize("of", [relu, lambda x: relu_beside(x)[0]], ids=["alone", "beside"])
def test_relu_can_be_differentiated_twice(
    of: Callable[[tf.Tensor], tf.Tensor], wrap: Callable[[Any], Any]
) -> None:
    def second(x: tf.Tensor) -> tf.Tensor:
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape() as inner:
                inner.watch(x)
                cubes = of(x) ** 3
            first = inner.gradient(cubes, x)
        return outer.gradient(first, x)

    x = tf.constant([-2.0, 0.0, 0.5, 3.0])
    np.testing.assert_allclose(wrap(second)(x), [0.0, 0.0, 3.0, 18.0])


def _derivatives(
    function: Callable[..., tf.Tensor], inputs: list[tf.Tensor]
) -> tuple[list[tf.Tensor], tf.Tensor]:
    """Its gradient by its inputs, and what that of a sum of those is by what it was given."""
    y = function(*inputs)
    given = tf.cast(_normal(*y.shape, seed=4), y.dtype)
    weights = [tf.cast(_normal(*x.shape, seed=5), x.dtype) for x in inputs]
    with tf.GradientTape() as outer:
        outer.watch(given)
        with tf.GradientTape() as inner:
            inner.watch(inputs)
            y = function(*inputs)
        gradients = inner.gradient(y, inputs, output_gradients=given)
    return gradients, outer.gradient(gradients, given, output_gradients=weights)


SUMS = [
    (add_bias, tf.add, [_normal(3, 4, 5, 2), _normal(2, seed=1)]),
    (
        add_beside,
        lambda x, y, b: x + (y + b),
        [_normal(3, 4, 5, 2), _normal(3, 4, 5, 2, seed=2), _normal(2, seed=1)],
    ),
]


@pytest.mark.parametrize("wrap", [lambda function: function, tf.function], ids=["eager", "graph"])
@pytest.mark.parametrize(("ours", "plain", "inputs"), SUMS, ids=["bias", "beside"])
def test_a_biass_derivatives_are_those_of_a_sum(
    ours: Callable[..., tf.Tensor],
    plain: Callable[..., tf.Tensor],
    inputs: list[tf.Tensor],
    wrap: Callable[[Any], Any],
) -> None:
    first, again = wrap(lambda: _derivatives(ours, inputs))()
    expected_first, expected_again = _derivatives(plain, inputs)
    for actual, expected in zip([*first, again], [*expected_first, expected_again], strict=True):
        np.testing.assert_allclose(actual, expected, rtol=1e-6)
    np.testing.assert_array_equal(ours(*inputs), plain(*inputs))


@pytest.mark.parametrize(
    ("shape", "kernel", "features", "padding", "size", "expected"),
    [
        ((40, 6, 8, 4), 3, 32, "SAME", 16, True),  # more images than parts
        ((3, 5, 16, 3), 3, 16, "VALID", 16, True),
        ((3, 1, 8, 1), 5, 8, "SAME", 8, True),  # all rows but one are around the image
        ((3, 6, 8, 4), 2, 16, "SAME", 16, False),  # one margin is larger
        ((3, 6, 8, 4), 3, 12, "SAME", 16, False),
        ((3, 6, 7, 4), 3, 16, "SAME", 16, False),
        ((3, 6, 8, 16), 3, 16, "SAME", 16, False),  # more sums than registers
        ((3, 6, 8, 4), 3, 16, "SAME", 0, False),
    ],
)
def test_weights_of_few_channels_are_learned_by_a_loop(
    shape: tuple[int, ...], kernel: int, features: int, padding: str, size: int, expected: bool
) -> None:
    with lanes(size):
        _weights_are_learned_by_a_loop(shape, kernel, features, padding, 1, expected)


@pytest.mark.parametrize(
    ("shape", "kernel", "features", "padding", "stride", "expected"),
    [
        ((60, 9, 9, 32), 3, 16, "VALID", 1, True),  # several images at once, and fewer at the end
        ((2, 7, 30, 16), 3, 16, "SAME", 1, True),  # one tile of channels, six of nine columns
        ((3, 6, 5, 32), 2, 48, "VALID", 1, True),  # a row's last pixel has no output
        ((3, 4, 6, 48), 5, 16, "SAME", 1, True),  # a kernel beyond the image; three of channels
        ((3, 5, 6, 32), 1, 16, "SAME", 1, True),  # no shift, and no zeros
        ((20, 12, 8, 8), 4, 16, "VALID", 2, True),  # blocks
        ((3, 13, 8, 8), 4, 16, "VALID", 2, False),  # no whole blocks
        ((3, 8, 8, 8), 4, 16, "SAME", 2, False),
        ((3, 6, 8, 24), 3, 16, "VALID", 1, False),
        ((3, 6, 8, 16), 3, 24, "VALID", 1, False),
        ((3, 6, 8, 16), 2, 16, "SAME", 1, False),  # one margin is larger
        ((1, 90, 90, 16), 3, 16, "VALID", 1, False),  # larger than a cache
    ],
)
@pytest.mark.parametrize("by", ["processor", "arrays"])
def test_weights_are_learned_by_products_of_tiles(
    shape: tuple[int, ...],
    kernel: int,
    features: int,
    padding: str,
    stride: int,
    expected: bool,
    by: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if by == "processor" and not vector_code.multiplies_tiles():
        pytest.skip("this processor multiplies no tiles")
    monkeypatch.setattr(tiles, "multiplies_tiles", lambda: by == "processor")
    monkeypatch.setattr(convolution, "uses_onednn", lambda: True)
    with lanes(16, tiles=True):
        _weights_are_learned_by_a_loop(shape, kernel, features, padding, stride, expected)


def _weights_are_learned_by_a_loop(
    shape: tuple[int, ...], kernel: int, features: int, padding: str, stride: int, expected: bool
) -> None:
    """Beside TensorFlow's gradients of float32, the second derivatives too."""
    x = tf.cast(_normal(*shape), tf.bfloat16)
    w = tf.cast(_normal(kernel, kernel, shape[-1], features, seed=1), tf.bfloat16)

    def ours(x: tf.Tensor, w: tf.Tensor) -> tf.Tensor:
        return convolve(x, w, padding, stride)

    def exact(x: tf.Tensor, w: tf.Tensor) -> tf.Tensor:
        x, w = (tf.cast(v, tf.float32) for v in (x, w))
        return tf.cast(tf.nn.conv2d(x, w, stride, padding), tf.bfloat16)

    def derivatives(function: Callable[..., tf.Tensor]) -> list[tf.Tensor]:
        first, again = _derivatives(function, [x, w])
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape() as inner:
                inner.watch(w)
                y = function(x, w)
            of_w = inner.gradient(y, w, output_gradients=tf.cast(_normal(*y.shape), y.dtype))
        of_x = outer.gradient(of_w, x, output_gradients=tf.cast(_normal(*w.shape), w.dtype))
        return [*first, again, of_x]

    traced = tf.function(lambda: derivatives(ours))
    graph = traced.get_concrete_function().graph
    assert ("PyFunc" in {op.type for op in graph.get_operations()}) == expected
    for actual, wanted in zip(traced(), derivatives(exact), strict=True):
        actual, wanted = (tf.cast(v, tf.float32).numpy() for v in (actual, wanted))
        np.testing.assert_allclose(actual, wanted, rtol=4 * HALF_STEP, atol=0.04 * wanted.std())


@pytest.mark.parametrize(
    ("shape", "size", "dtype"),
    [
        ((3, 8, 7, 2), 16, tf.float32),  # no whole vectors of channels: XLA's loops
        ((2, 7, 9, 16), 0, tf.bfloat16),
        ((3, 8, 7, 32), 16, tf.float32),  # loops, over several rows of windows and one that is left
        ((2, 9, 6, 16), 8, tf.bfloat16),
        ((1, 1, 2, 16), 16, tf.float32),
    ],
)
def test_pooling_is_tensorflows_with_its_derivatives(
    shape: tuple[int, ...], size: int, dtype: tf.DType
) -> None:
    with lanes(size):
        _compare_pooling(shape, dtype)


def _compare_pooling(shape: tuple[int, ...], dtype: tf.DType) -> None:
    # A black sky: most pixels are equal, and the first of them is the one that is pooled.
    x = tf.cast(tf.nn.relu(_normal(*shape)), dtype)
    b = tf.cast(_normal(shape[-1], seed=1), dtype)

    def pool(x: tf.Tensor, b: tf.Tensor) -> tf.Tensor:  # what several windows give, in float32
        y = tf.nn.max_pool2d(tf.cast(x + b, tf.float32), ksize=3, strides=2, padding="SAME")
        return tf.cast(y, x.dtype)

    def assert_equal(actual: tf.Tensor, expected: tf.Tensor) -> None:
        np.testing.assert_array_equal(*(tf.cast(x, tf.float32) for x in (actual, expected)))

    (ours, ours_of_b), ours_again = _derivatives(max_pool, [x, b])
    (theirs, _), theirs_again = _derivatives(pool, [x, b])
    assert_equal(max_pool(x, b), pool(x, b))
    assert_equal(ours, theirs)
    assert_equal(ours_again, theirs_again)
    # TensorFlow rounds what pixels have been given before it sums them for the bias.
    given = tf.cast(_normal(*max_pool(x, b).shape, seed=4), dtype)
    expected = tf.reduce_sum(tf.cast(given, tf.float32), axis=[0, 1, 2])
    rounding = 1e-5 if dtype == tf.float32 else HALF_STEP
    np.testing.assert_allclose(tf.cast(ours_of_b, tf.float32), expected, rtol=rounding, atol=1e-5)


@pytest.mark.parametrize(("width", "expected"), [(2048, True), (2049, False)])
def test_pooling_in_loops_takes_rows_that_a_cache_holds(width: int, expected: bool) -> None:
    image = tf.zeros([1, 3, width, 16])

    @tf.function
    def pool(x: tf.Tensor) -> tf.Tensor:
        return max_pool(x, tf.zeros([16]))

    with lanes(16):
        operations = pool.get_concrete_function(image).graph.get_operations()
        assert pool(image).shape == (1, 2, -(-width // 2), 16)
    assert any(op.type == "PyFunc" for op in operations) == expected


def test_pooling_keeps_what_is_no_number() -> None:
    x = tf.tensor_scatter_nd_update(_normal(1, 7, 9, 16), [[0, 2, 4, 5]], [np.nan])
    with lanes(16):
        y = max_pool(x, tf.zeros([16])).numpy()
    assert np.isnan(y[0, 1, 2, 5])  # of the windows that have it, the one that has it in the middle


def _layers(dtype: tf.DType) -> list[tuple[Layer, tf.Tensor]]:
    return [
        (Linear(5, dtype=dtype), _normal(7, 16)),
        (Conv2D(5, 3, 2, dtype=dtype), _normal(2, 7, 6, 4)),
        (Conv2D(5, 3, 2, padding="VALID", dtype=dtype), _normal(2, 7, 6, 4)),
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
    # Rounding may move each factor of a product, the sum of all, and what the bias makes of it.
    error = np.abs(tf.cast(y, tf.float32) - expected)
    _set(exact, tf.abs(_variables(exact)["w:0"]), tf.abs(_variables(exact)["b:0"]))
    of_sizes = exact(tf.abs(x))
    assert (error <= 4.1 * HALF_STEP * of_sizes.numpy()).all()
    # More than the outputs alone have been rounded.
    assert (error > 1.01 * HALF_STEP * np.abs(expected)).any()


@pytest.mark.parametrize("case", range(3), ids=["linear", "same", "valid"])
def test_gradients_of_bfloat16_are_float32_and_near(case: int) -> None:
    (layer, x), (exact, _) = _layers(tf.bfloat16)[case], _layers(tf.float32)[case]
    layer(x)
    exact(x)
    _randomise(layer, exact)
    actual, expected = _gradients(layer, x), _gradients(exact, x)
    for name in expected:
        assert actual[name].dtype == tf.float32
        distance = tf.norm(actual[name] - expected[name]) / tf.norm(expected[name])
        assert 0 < float(distance) < 2 * HALF_STEP


@pytest.mark.parametrize(
    ("layer", "shape"),
    [(Linear(3, dtype=tf.bfloat16), (6_000, 2)), (Conv2D(3, 1, dtype=tf.bfloat16), (6, 40, 25, 2))],
    ids=["linear", "conv2d"],
)
def test_the_bias_gradient_is_summed_in_float32(layer: Layer, shape: tuple[int, ...]) -> None:
    """A sum in bfloat16 no longer grows by 1 when it has come to 256."""
    x = tf.cast(_normal(*shape), tf.bfloat16)
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


@pytest.mark.parametrize(
    ("shape", "size", "expected"),
    [
        ((40, 3, 5, 16), 16, True),  # more rows than parts
        ((1, 1, 3, 32), 16, True),
        ((7, 80), 16, True),  # more vectors than are summed at once
        ((7, 72), 8, True),
        ((7, 72), 16, False),
        ((7, 16), 0, False),
    ],
)
def test_many_numbers_of_bfloat16_are_summed_by_a_loop(
    shape: tuple[int, ...], size: int, expected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    called = []

    def sums(*given: Any) -> tf.Tensor:
        called.append(given)
        return sums_of_parts(*given)

    monkeypatch.setattr(layers, "sums_of_parts", sums)
    monkeypatch.setattr(layers, "_MANY", np.prod(shape))
    of_y = tf.cast(_normal(*shape), tf.bfloat16)
    with lanes(size):
        _, of_b = of_sum(of_y)
        assert bool(called) == expected
        monkeypatch.setattr(layers, "_MANY", np.prod(shape) + 1)
        of_sum(of_y)
        assert len(called) == expected  # of few it is TensorFlow's
    total = tf.cast(of_y, tf.float64).numpy().reshape(-1, shape[-1]).sum(axis=0)
    assert of_b.dtype == tf.bfloat16
    np.testing.assert_allclose(tf.cast(of_b, tf.float64), total, rtol=HALF_STEP, atol=1e-5)
