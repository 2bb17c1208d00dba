"""Convolutions by blocks: the same numbers as pixel by pixel."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from tensor_ops import convolution, tiles, vector_code
from tensor_ops.convolution import conv2d, convolve, kernel_of_blocks, to_blocks
from tensor_ops.elementwise import as_float
from tests.tensor_ops.numbers import HALF_STEP, derivatives, normal, random_bytes
from tests.tensor_ops.vectors import lanes

CASES = [(2, 2, 3), (8, 4, 4), (6, 3, 1)]  # kernel, stride, channels


@pytest.mark.parametrize(("kernel", "stride", "channels"), CASES)
def test_a_convolution_over_blocks_is_one_over_pixels(
    kernel: int, stride: int, channels: int
) -> None:
    image = random_bytes(2, 3 * stride * 2, 4 * stride * 2, channels)
    w = normal(kernel, kernel, channels, 5)
    expected = tf.nn.conv2d(as_float(image), w, stride, "VALID")
    blocks = to_blocks(image, stride)
    actual = tf.nn.conv2d(blocks, kernel_of_blocks(w, stride), 1, "VALID")
    np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize(
    ("dtype", "padding", "stride", "side", "in_blocks"),
    [
        (tf.bfloat16, "VALID", 4, 12, True),
        (tf.bfloat16, "VALID", 4, 13, False),  # a block would reach beyond the image
        (tf.bfloat16, "VALID", 3, 12, False),  # nor is the kernel made of whole ones
        (tf.bfloat16, "VALID", 1, 12, False),
        (tf.bfloat16, "SAME", 4, 12, False),
        (tf.float32, "VALID", 4, 12, None),  # beside a GPU
    ],
)
@pytest.mark.parametrize("devices", [[], ["GPU:0"]])
def test_an_image_becomes_blocks_where_that_is_exact_and_quicker(
    dtype: tf.DType,
    padding: str,
    stride: int,
    side: int,
    in_blocks: bool | None,
    devices: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tf.config, "list_logical_devices", lambda kind: devices)
    if in_blocks is None:
        in_blocks = bool(devices)
    cut = []

    def cut_to_blocks(*given: Any) -> tf.Tensor:
        cut.append(given)
        return to_blocks(*given)

    monkeypatch.setattr(convolution, "to_blocks", cut_to_blocks)
    image, w, b = random_bytes(2, side, 24, 4), normal(8, 8, 4, 3), normal(3, seed=1)
    fractions = tf.cast(image, tf.float32) / 255
    of_bytes, of_fractions = (
        tf.cast(conv2d(x, w, b, stride=stride, padding=padding, dtype=dtype), tf.float32)
        for x in (image, fractions)
    )
    assert len(cut) == in_blocks  # of bytes alone
    np.testing.assert_allclose(of_bytes, of_fractions, rtol=0.02, atol=0.3)


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
    with lanes(16, tiles=True):
        _weights_are_learned_by_a_loop(shape, kernel, features, padding, stride, expected)


def _weights_are_learned_by_a_loop(
    shape: tuple[int, ...], kernel: int, features: int, padding: str, stride: int, expected: bool
) -> None:
    """Compares with TensorFlow's gradients, the second derivatives too.

    They are exact where the loop computes them. Elsewhere they are TensorFlow's own in bfloat16,
    whose sums are as exact as the processor's instructions allow.
    """
    x = tf.cast(normal(*shape), tf.bfloat16)
    w = tf.cast(normal(kernel, kernel, shape[-1], features, seed=1), tf.bfloat16)

    def ours(x: tf.Tensor, w: tf.Tensor) -> tf.Tensor:
        return convolve(x, w, padding, stride)

    def theirs(x: tf.Tensor, w: tf.Tensor) -> tf.Tensor:
        if expected:
            x, w = (tf.cast(v, tf.float32) for v in (x, w))
        return tf.cast(tf.nn.conv2d(x, w, stride, padding), tf.bfloat16)

    def found(function: Callable[..., tf.Tensor]) -> list[tf.Tensor]:
        first, again = derivatives(function, [x, w])
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape() as inner:
                inner.watch(w)
                y = function(x, w)
            of_w = inner.gradient(y, w, output_gradients=tf.cast(normal(*y.shape), y.dtype))
        of_x = outer.gradient(of_w, x, output_gradients=tf.cast(normal(*w.shape), w.dtype))
        return [*first, again, of_x]

    traced = tf.function(lambda: found(ours))
    graph = traced.get_concrete_function().graph
    assert ("PyFunc" in {op.type for op in graph.get_operations()}) == expected
    for actual, wanted in zip(traced(), found(theirs), strict=True):
        actual, wanted = (tf.cast(v, tf.float32).numpy() for v in (actual, wanted))
        np.testing.assert_allclose(actual, wanted, rtol=4 * HALF_STEP, atol=0.04 * wanted.std())
