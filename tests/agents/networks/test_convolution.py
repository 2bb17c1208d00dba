"""Convolutions by blocks: the same numbers as pixel by pixel."""

from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from agents.networks import convolution
from agents.networks.convolution import (
    Blocks,
    Conv2D,
    convolve,
    kernel_of_blocks,
    to_blocks,
)
from agents.networks.layers import as_float

CASES = [(2, 2, 3), (8, 4, 4), (6, 3, 1)]  # kernel, stride, channels


def _bytes(*shape: int) -> tf.Tensor:
    return tf.constant(np.random.default_rng(0).integers(256, size=shape, dtype=np.uint8))


def _normal(*shape: int, seed: int = 0) -> tf.Tensor:
    return tf.constant(np.random.default_rng(seed).normal(size=shape), tf.float32)


@pytest.mark.parametrize(("stride", "channels"), [(2, 3), (4, 1), (1, 4)])
def test_a_blocks_pixels_are_row_by_row(stride: int, channels: int) -> None:
    image = _bytes(2, 2 * stride, 3 * stride, channels)
    blocks = to_blocks(image, stride)
    assert blocks.shape == (2, 2, 3, stride**2 * channels)
    for row in range(2):
        for column in range(3):
            block = image[:, row * stride : (row + 1) * stride]
            block = block[:, :, column * stride : (column + 1) * stride]
            np.testing.assert_array_equal(
                blocks[:, row, column], as_float(tf.reshape(block, [2, -1]))
            )


@pytest.mark.parametrize(("kernel", "stride", "channels"), CASES)
def test_a_convolution_over_blocks_is_one_over_pixels(
    kernel: int, stride: int, channels: int
) -> None:
    image = _bytes(2, 3 * stride * 2, 4 * stride * 2, channels)
    w = _normal(kernel, kernel, channels, 5)
    expected = tf.nn.conv2d(as_float(image), w, stride, "VALID")
    blocks = to_blocks(image, stride)
    actual = tf.nn.conv2d(blocks, kernel_of_blocks(w, stride), 1, "VALID")
    np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-4)


@pytest.fixture(params=[False, True], ids=["plain", "onednn"])
def onednn(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether oneDNN is said to be used."""
    monkeypatch.setattr(convolution, "uses_onednn", lambda: request.param)
    return bool(request.param)


@pytest.mark.parametrize(("kernel", "padding"), [(2, "VALID"), (3, "VALID"), (4, "SAME")])
def test_gradients_are_tensorflows_and_so_are_theirs(
    kernel: int, padding: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To the second order, as a metagradient has it."""
    monkeypatch.setattr(convolution, "uses_onednn", lambda: False)
    x, w = _normal(2, 5, 7, 3), _normal(kernel, kernel, 3, 4, seed=1)

    def run(function: Any) -> list[tf.Tensor]:
        with tf.GradientTape() as outer:
            outer.watch([x, w])
            with tf.GradientTape() as inner:
                inner.watch([x, w])
                y = function(x, w)
                loss = tf.reduce_sum(tf.sin(y))
            gradients = inner.gradient(loss, [x, w])
            again = sum(tf.reduce_sum(tf.sin(g)) for g in gradients)
        return [y, *gradients, *outer.gradient(again, [x, w])]

    ours = run(lambda x, w: convolve(x, w, padding))
    expected = run(lambda x, w: tf.nn.conv2d(x, w, 1, padding))
    for actual, wanted in zip(ours, expected, strict=True):
        np.testing.assert_allclose(actual, wanted, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("devices", [[], ["GPU:0"]])
def test_gpus_and_onednn_keep_their_own_gradients(
    devices: list[str], onednn: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = {"Conv2D", "Conv2DBackpropInput", "Conv2DBackpropFilter"}
    types = own if devices or onednn else {"Conv2D", "MatMul"}
    monkeypatch.setattr(tf.config, "list_logical_devices", lambda kind: devices)

    @tf.function
    def gradients(x: tf.Tensor, w: tf.Tensor) -> list[tf.Tensor]:
        return tf.gradients(convolve(x, w, "SAME"), [x, w])

    graph = gradients.get_concrete_function(_normal(2, 5, 7, 3), _normal(3, 3, 3, 4)).graph
    multiplying = ("Conv2D", "MatMul")
    assert {op.type for op in graph.get_operations() if op.type.startswith(multiplying)} == types


@pytest.mark.parametrize(
    ("dtype", "padding", "stride", "side", "in_blocks"),
    [
        (tf.bfloat16, "VALID", 4, 12, True),
        (tf.bfloat16, "VALID", 4, 13, False),  # a block would reach beyond the image
        (tf.bfloat16, "VALID", 3, 12, False),  # nor is the kernel made of whole ones
        (tf.bfloat16, "VALID", 1, 12, False),
        (tf.bfloat16, "SAME", 4, 12, False),
        (tf.float32, "VALID", 4, 12, None),  # where oneDNN is not used
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
    onednn: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tf.config, "list_logical_devices", lambda kind: devices)
    if in_blocks is None:
        in_blocks = not onednn or bool(devices)
    layer, image = Conv2D(3, 8, stride, padding=padding, dtype=dtype), _bytes(2, side, 24, 4)
    prepared = layer.prepare(image)
    assert isinstance(prepared, Blocks) == in_blocks
    from_bytes = layer(prepared)
    fractions = tf.cast(image, tf.float32) / 255
    np.testing.assert_allclose(
        tf.cast(from_bytes, tf.float32), tf.cast(layer(fractions), tf.float32), rtol=0.02, atol=0.02
    )
    assert isinstance(layer.prepare(fractions), tf.Tensor)
    assert layer.trainable_variables[1].shape == (8, 8, 4, 3)
