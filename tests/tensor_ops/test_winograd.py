"""Winograd's convolutions, beside naive loops and TensorFlow's gradients."""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from tensor_ops import loops, winograd
from tensor_ops.convolution import conv2d, kernel_of_blocks
from tensor_ops.winograd_code import matrices, transform, transform_both
from tests.tensor_ops.numbers import normal, random_bytes
from tests.tensor_ops.vectors import lanes

FORMS = [(4, 3), (3, 3), (2, 3), (4, 2), (3, 2), (2, 2)]  # outputs and weights of a side


def _naive(x: np.ndarray, w: np.ndarray, stride: int, margin: int) -> np.ndarray:
    """A convolution `[B, H, W, C]`, `[k, k, C, F]` -> `[B, H', W', F]`, in float64."""
    x = np.pad(x.astype(np.float64), [(0, 0), (margin, margin), (margin, margin), (0, 0)])
    kernel = len(w)
    rows, columns = ((side - kernel) // stride + 1 for side in x.shape[1:3])
    y = np.zeros([len(x), rows, columns, w.shape[3]])
    for row in range(rows):
        for column in range(columns):
            down, right = row * stride, column * stride
            window = x[:, down : down + kernel, right : right + kernel]
            y[:, row, column] = np.tensordot(window, w.astype(np.float64), 3)
    return y


@pytest.mark.parametrize(("tile", "kernel"), FORMS)
def test_a_tiles_outputs_are_those_of_a_convolution(tile: int, kernel: int) -> None:
    of_inputs, of_weights, of_products = matrices(tile, kernel)
    rng = np.random.default_rng(0)
    x = rng.normal(size=[tile + kernel - 1] * 2)
    w = rng.normal(size=[kernel, kernel])
    products = (of_weights @ w @ of_weights.T) * (of_inputs @ x @ of_inputs.T)
    made = of_products @ products @ of_products.T
    expected = _naive(x[None, :, :, None], w[:, :, None, None], 1, 0)[0, :, :, 0]
    np.testing.assert_allclose(made, expected, rtol=1e-12, atol=1e-12)


def _at(x: np.ndarray, i: int, j: int) -> float:
    return float(x[i, j])


@pytest.mark.parametrize(("tile", "kernel"), FORMS)
def test_a_transform_is_its_matrix(tile: int, kernel: int) -> None:
    of_inputs, _, of_products = matrices(tile, kernel)
    for matrix in (of_inputs, of_products, of_products.T):
        x = np.random.default_rng(0).normal(size=[matrix.shape[1]] * 2)
        np.testing.assert_allclose(transform(matrix, list(x[0])), matrix @ x[0], atol=1e-12)
        both = transform_both(matrix, functools.partial(_at, x))
        np.testing.assert_allclose(both, matrix @ x @ matrix.T, atol=1e-12)


def test_what_points_and_their_negatives_share_is_computed_once() -> None:
    """12 operations for the six sums of 4 x 4 outputs, where they are 16 one after another."""

    class Counted:
        operations = 0

        def _one(self, other: Any) -> "Counted":
            Counted.operations += not isinstance(other, float)  # a product goes with its sum
            return self

        __add__ = __sub__ = __mul__ = _one

    of_inputs, _, of_products = matrices(4, 3)
    for matrix, expected in [(of_inputs, 12), (of_products, 10), (of_products.T, 8)]:
        Counted.operations = 0
        transform(matrix, [Counted() for _ in range(matrix.shape[1])])
        assert Counted.operations == expected


# height, width, channels, features, kernel, stride, padding
BEYOND = (11, 9, 16, 32, 3, 1, "SAME")  # tiles beyond the image, another number of features
STRIPS = (22, 18, 32, 16, 3, 1, "SAME")  # several strips of rows, the last of them shorter
LONG = (5, 54, 16, 16, 3, 1, "SAME")  # more tiles in a row than are multiplied at once
VALID = (9, 9, 32, 16, 3, 1, "VALID")
STRIDED = (20, 16, 16, 32, 4, 2, "VALID")
LINES = (28, 36, 4, 32, 8, 4, "VALID")  # a block's lines are whole vectors


def _arrays(size: tuple[Any, ...], dtype: tf.DType = tf.float32) -> list[tf.Tensor]:
    """x, w, b, and a tensor of the outputs' shape."""
    height, width, channels, features, kernel, stride, padding = size
    x = tf.cast(normal(2, height, width, channels), dtype)
    w = normal(kernel, kernel, channels, features, seed=1) / kernel / channels**0.5
    outputs = tf.nn.conv2d(tf.cast(x, tf.float32), w, stride, padding).shape
    beside = tf.cast(normal(*outputs, seed=3), dtype)
    return [x, w, normal(features, seed=2), beside]


def _ours(size: tuple[Any, ...], dtype: tf.DType, after_relu: bool) -> Callable[..., tf.Tensor]:
    stride, padding = size[-2:]

    def run(x: tf.Tensor, w: tf.Tensor, b: tf.Tensor, beside: tf.Tensor) -> tf.Tensor:
        w = kernel_of_blocks(w, stride)
        return winograd.convolve(
            x, w, stride, padding, dtype, b, after_relu=after_relu, beside=beside
        )

    return run


def _theirs(size: tuple[Any, ...], after_relu: bool) -> Callable[..., tf.Tensor]:
    stride, padding = size[-2:]

    def run(x: tf.Tensor, w: tf.Tensor, b: tf.Tensor, beside: tf.Tensor) -> tf.Tensor:
        x = tf.cast(x, tf.float32)
        x = tf.nn.relu(x) if after_relu else x
        return tf.nn.conv2d(x, w, stride, padding) + b + tf.cast(beside, tf.float32)

    return run


@pytest.mark.parametrize(
    ("size", "vectors"),
    [(BEYOND, 16), (STRIPS, 16), (LONG, 16), (VALID, 8), (STRIDED, 8), (LINES, 16)],
)
def test_outputs_are_those_of_naive_loops(size: tuple[Any, ...], vectors: int) -> None:
    """The inputs are floats, and bytes, which are read as fractions."""
    height, width, channels, features, kernel, stride, padding = size
    x, w, *_ = _arrays(size)
    bytes_ = random_bytes(2, height, width, channels)
    with lanes(vectors):
        assert winograd.convolves(x, kernel, stride, padding, features)
        for images, numbers in ((x, x.numpy()), (bytes_, bytes_.numpy() / 255)):
            expected = _naive(numbers, w.numpy(), stride, int(padding == "SAME"))
            of_blocks = kernel_of_blocks(w, stride)
            made = winograd.convolve(images, of_blocks, stride, padding, tf.float32)
            np.testing.assert_allclose(made, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("size", "after_relu"),
    [
        (STRIPS, True),
        (VALID, False),
        (LINES, True),
    ],
    ids=["same", "valid", "strided"],
)
def test_gradients_are_tensorflows_and_so_are_theirs(
    size: tuple[Any, ...], after_relu: bool
) -> None:
    """Gradients to the second order are compared, as a metagradient needs them."""
    given = _arrays(size)

    def run(function: Any) -> list[tf.Tensor]:
        with tf.GradientTape() as outer:
            outer.watch(given)
            with tf.GradientTape() as inner:
                inner.watch(given)
                y = function(*given)
                loss = tf.reduce_sum(tf.sin(y))
            gradients = inner.gradient(loss, given)
            again = sum(tf.reduce_sum(tf.sin(g / 10)) for g in gradients)
        return [y, *gradients, *outer.gradient(again, given)]

    with lanes(16):
        ours = run(_ours(size, tf.float32, after_relu))
    expected = run(_theirs(size, after_relu))
    for actual, wanted in zip(ours, expected, strict=True):
        np.testing.assert_allclose(actual, wanted, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("size", [BEYOND, STRIDED])
def test_bfloat16_is_rounded_once(size: tuple[Any, ...]) -> None:
    given = _arrays(size, tf.bfloat16)

    def run(function: Any) -> list[tf.Tensor]:
        with tf.GradientTape() as tape:
            tape.watch(given)
            y = function(*given)
            loss = tf.reduce_sum(tf.cast(y, tf.float32) * normal(*y.shape, seed=4))
        return [y, *tape.gradient(loss, given)]

    with lanes(16):
        ours = run(_ours(size, tf.bfloat16, True))
    half = [tf.bfloat16] * 2 + [tf.float32] * 2 + [tf.bfloat16]
    assert [x.dtype for x in ours] == half
    # The loss's weights are rounded too where they come to bfloat16.
    for actual, wanted in zip(ours, run(_theirs(size, True)), strict=True):
        actual, wanted = (tf.cast(x, tf.float32).numpy() for x in (actual, wanted))
        np.testing.assert_allclose(actual, wanted, rtol=2**-7, atol=0.01 * wanted.std())


def test_images_that_are_gathered_teach_as_others() -> None:
    """The gradient of gathered images comes as slices with their indices."""
    x, w, *_ = _arrays(BEYOND)

    def taught(function: Any) -> list[tf.Tensor]:
        with tf.GradientTape() as tape:
            tape.watch([x, w])
            loss = tf.reduce_sum(tf.gather(function(x, w), [1, 1]) ** 2)
        return tape.gradient(loss, [x, w])

    with lanes(16):
        ours = taught(lambda x, w: winograd.convolve(x, w, 1, "SAME", tf.float32))
    theirs = taught(lambda x, w: tf.nn.conv2d(x, w, 1, "SAME"))
    for actual, wanted in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(actual, wanted, rtol=1e-3, atol=1e-3)


def test_bytes_learn_nothing_and_what_reads_them_does() -> None:
    x, w = random_bytes(3, 28, 36, 4), normal(8, 8, 4, 16)

    def run(function: Any) -> tf.Tensor:
        with tf.GradientTape() as tape:
            tape.watch(w)
            loss = tf.reduce_sum(tf.sin(function(w)))
        return tape.gradient(loss, w)

    with lanes(16):
        ours = run(lambda w: winograd.convolve(x, kernel_of_blocks(w, 4), 4, "VALID", tf.float32))
    theirs = run(lambda w: tf.nn.conv2d(tf.cast(x, tf.float32) / 255, w, 4, "VALID"))
    np.testing.assert_allclose(ours, theirs, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("batch", [0, 1, 5])
def test_a_batch_of_any_size_in_any_number_of_parts(
    batch: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    x, w, b, _ = _arrays(BEYOND)
    images = tf.tile(x[:1], [batch, 1, 1, 1])

    @tf.function(input_signature=[tf.TensorSpec([None, *x.shape[1:]], tf.float32)])
    def run(x: tf.Tensor) -> list[tf.Tensor]:
        with tf.GradientTape() as tape:
            tape.watch([w, b])
            y = winograd.convolve(x, w, 1, "SAME", tf.float32, b)
        assert y.shape[1:] == (*x.shape[1:3], 32)
        return [y, *tape.gradient(y, [w, b])]

    made = []
    for threads in (1, 3):
        monkeypatch.setattr(loops, "num_threads", lambda threads=threads: threads)
        with lanes(16):
            made.append(run(images))
    np.testing.assert_array_equal(made[0][0], made[1][0])
    for one, other in zip(made[0][1:], made[1][1:], strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-4)
    if batch:
        np.testing.assert_array_equal(made[0][0][0], made[0][0][-1])  # an image is one's own
    else:
        assert not any(np.any(g) for g in made[0][1:])


def test_what_is_no_number_stays_that_in_its_windows() -> None:
    x, w, b, beside = _arrays(BEYOND)
    spoilt = tf.tensor_scatter_nd_update(x, [[1, 5, 4, 3]], [np.nan])
    with lanes(16):
        y = _ours(BEYOND, tf.float32, True)(spoilt, w, b, beside).numpy()
    assert np.isnan(y[1, 4:7, 3:6]).all()
    assert np.isfinite(y[0]).all()


@pytest.mark.parametrize(
    ("shape", "kernel", "stride", "padding", "features", "expected"),
    [
        ((2, 42, 42, 16), 3, 1, "SAME", 32, True),
        ((2, 42, 42, 24), 3, 1, "SAME", 32, False),  # no whole vectors of channels
        ((2, 42, 42, 16), 3, 1, "SAME", 20, False),  # nor of features
        ((2, 42, 42, 16), 5, 1, "SAME", 16, False),  # would lose digits
        ((2, 42, 42, 16), 1, 1, "VALID", 16, False),  # nothing to save
        ((2, 42, 42, 16), 4, 2, "SAME", 16, False),  # blocks that begin beyond the image
        ((2, 42, 42, 16), 3, 2, "VALID", 16, False),  # a kernel of no whole blocks
        ((2, 41, 42, 16), 4, 2, "VALID", 16, False),  # an image of none
        ((2, 3, 3, 16), 3, 1, "VALID", 16, False),  # most of a tile would be beyond it
        ((2, 42, 42, 1024), 3, 1, "SAME", 1024, False),  # more than a cache holds
        ((2, None, 42, 16), 3, 1, "SAME", 16, False),
        ((2, 2, 42, 16), 3, 1, "VALID", 16, False),  # TensorFlow says what is wrong
        ((42, 42, 16), 3, 1, "SAME", 16, False),
    ],
)
def test_loops_take_what_they_gain_by(
    shape: tuple[int | None, ...],
    kernel: int,
    stride: int,
    padding: str,
    features: int,
    expected: bool,
) -> None:
    x = tf.TensorSpec(shape, tf.float32)
    with lanes(16):
        assert winograd.convolves(x, kernel, stride, padding, features) == expected
    with lanes(0):
        assert not winograd.convolves(x, kernel, stride, padding, features)


def test_neither_gpus_nor_xla_know_these_loops(monkeypatch: pytest.MonkeyPatch) -> None:
    x = normal(2, 12, 12, 16)
    answers = []

    @tf.function(jit_compile=True)
    def within(x: tf.Tensor) -> tf.Tensor:
        answers.append(winograd.convolves(x, 3, 1, "SAME", 16))
        return x

    with lanes(16):
        assert winograd.convolves(x, 3, 1, "SAME", 16)
        within(x)
        monkeypatch.setattr(tf.config, "list_logical_devices", lambda kind: ["GPU:0"])
        answers.append(winograd.convolves(x, 3, 1, "SAME", 16))
    assert answers == [False, False]


@pytest.mark.parametrize(
    ("dtype", "tiles", "by_loops"),
    [(tf.bfloat16, True, False), (tf.bfloat16, False, True), (tf.float32, True, True)],
)
def test_bfloat16_is_left_to_a_processor_that_multiplies_tiles(
    dtype: tf.DType, tiles: bool, by_loops: bool
) -> None:
    with lanes(16, tiles=tiles):
        graph = tf.function(conv2d).get_concrete_function(
            tf.TensorSpec([2, 12, 12, 16], dtype),
            tf.TensorSpec([3, 3, 16, 16]),
            tf.TensorSpec([16]),
            dtype=dtype,
        )
    found = {op.type for op in graph.graph.get_operations()} & {"PyFunc", "Conv2D"}
    assert found == {"PyFunc" if by_loops else "Conv2D"}


@pytest.mark.parametrize(
    ("size", "dtype"),
    [(BEYOND, tf.bfloat16), (LINES, tf.float32)],
    ids=["same-half", "strided"],
)
def test_a_convolution_is_the_same_by_either_way(size: tuple[Any, ...], dtype: tf.DType) -> None:
    """With a ReLU before it, with what is added to it, and pooled."""
    x, w, b, beside = _arrays(size, dtype)
    image = random_bytes(*x.shape)
    how: dict[str, Any] = dict(stride=size[-2], padding=size[-1], dtype=dtype)

    def run() -> list[tf.Tensor]:
        given = [x, w, b, beside]
        with tf.GradientTape() as tape:
            tape.watch(given)
            ys = [
                conv2d(x, w, b, **how),
                conv2d(x, w, b, after_relu=True, **how),
                conv2d(x, w, b, after_relu=True, plus=beside, **how),
                conv2d(image, w, b, **how),
            ]
            if dtype == tf.float32:  # rounding would find another one the largest
                ys.append(conv2d(x, w, b, pool=True, **how))
            loss = sum(
                tf.reduce_sum(tf.cast(y, tf.float32) * normal(*y.shape, seed=i))
                for i, y in enumerate(ys)
            )
        return ys + tape.gradient(loss, given)

    with lanes(16):
        ours = run()
    with lanes(0):
        theirs = run()
    rounding = 1e-5 if dtype == tf.float32 else 2e-2
    for actual, wanted in zip(ours, theirs, strict=True):
        assert actual.dtype == wanted.dtype
        actual, wanted = (tf.cast(y, tf.float32).numpy() for y in (actual, wanted))
        np.testing.assert_allclose(actual, wanted, rtol=rounding, atol=rounding * 4 * wanted.std())
