"""Convolutions with square kernels, in a precision of their own.

A convolution with stride s and a kernel of k x k pixels, k a multiple of s, is one with stride 1
and a kernel of k/s x k/s blocks of pixels, whose s² C numbers are its channels:

    image [B, H, W, C]  --blocks of s x s pixels-->  [B, H / s, W / s, s² C]

oneDNN's kernels in bfloat16 like it better so, for they multiply tiles of channels and an image has
few: the first convolution's two products take half the time, and the gradient of a strided one's
inputs a third. In float32 nothing is gained, and nothing of this is done.
"""

from collections.abc import Callable
from typing import NamedTuple

import sonnet as snt
import tensorflow as tf

from agents.networks.layers import add_bias, as_float, make_weights


class Blocks(NamedTuple):
    """Images as the blocks that a convolution strides over; a block's pixels are row by row."""

    pixels: tf.Tensor  # [B, H / s, W / s, s² C], floating


class Conv2D(snt.Module):
    """A convolution with square kernels.

    Args:
      channels: of the outputs.
      kernel: pixels of its side.
      stride: pixels.
      padding: `VALID` or `SAME`.
      w_init: of the weights; None is Sonnet's default.
      dtype: of the arithmetic and of the outputs.
    """

    def __init__(
        self,
        channels: int,
        kernel: int,
        stride: int = 1,
        *,
        padding: str = "SAME",
        w_init: snt.initializers.Initializer | None = None,
        dtype: tf.DType = tf.float32,
    ) -> None:
        super().__init__()
        self._channels = channels
        self._kernel = kernel
        self._stride = stride
        self._padding = padding
        self._w_init = w_init
        self._dtype = dtype

    def prepare(self, image: tf.Tensor) -> tf.Tensor | Blocks:
        """What `__call__` does before there are parameters: several networks can share it.

        Args:
          image: `[B, H, W, C]`; bytes become fractions, and blocks where that is quicker.
        """
        if image.dtype != tf.uint8 or not self._likes_blocks(image):
            return as_float(image, self._dtype)
        return Blocks(as_float(to_blocks(image, self._stride), self._dtype))

    def __call__(self, x: tf.Tensor | Blocks) -> tf.Tensor:
        """`[B, H, W, C]`, prepared or not -> `[B, H', W', channels]`."""
        x = x if isinstance(x, Blocks) else tf.cast(x, self._dtype)
        self._create_variables(
            x.pixels.shape[3] // self._stride**2 if isinstance(x, Blocks) else x.shape[3]
        )
        w, b = (tf.cast(value, self._dtype) for value in (self._w, self._b))
        return add_bias(self._convolve(x, w), b)

    def _convolve(self, x: tf.Tensor | Blocks, w: tf.Tensor) -> tf.Tensor:
        if isinstance(x, Blocks):
            return tf.nn.conv2d(x.pixels, kernel_of_blocks(w, self._stride), 1, "VALID")
        if self._likes_blocks(x):
            return convolve_strided(x, w, self._stride)
        return tf.nn.conv2d(x, w, self._stride, self._padding)

    def _likes_blocks(self, image: tf.Tensor) -> bool:
        if self._dtype != tf.bfloat16 or self._padding != "VALID" or self._stride == 1:
            return False
        return not any(side % self._stride for side in (self._kernel, *image.shape[1:3]))

    @snt.once
    def _create_variables(self, num_channels: int) -> None:
        shape = [self._kernel, self._kernel, num_channels, self._channels]
        self._w = make_weights(shape, self._w_init)
        self._b = tf.Variable(tf.zeros([self._channels]), name="b")


def to_blocks(image: tf.Tensor, stride: int) -> tf.Tensor:
    """Cuts bytes into blocks: uint8 `[B, H, W, C]` -> `[B, H / s, W / s, s² C]`.

    Moves words of four bytes where a block's row is made of such, in a quarter of the time that
    `tf.nn.space_to_depth` takes to move each byte.
    """
    height, width, channels = image.shape[1:]
    rows, columns, row_bytes = height // stride, width // stride, stride * channels
    if row_bytes % 4:
        return tf.nn.space_to_depth(image, stride)
    words = tf.bitcast(tf.reshape(image, [-1, rows, stride, columns, row_bytes // 4, 4]), tf.uint32)
    blocks = tf.transpose(words, [0, 1, 3, 2, 4])  # [B, H / s, W / s, s, s C / 4]
    return tf.reshape(tf.bitcast(blocks, tf.uint8), [-1, rows, columns, stride * row_bytes])


def kernel_of_blocks(w: tf.Tensor, stride: int) -> tf.Tensor:
    """A kernel over pixels `[k, k, C, F]` -> over blocks of them `[k / s, k / s, s² C, F]`."""
    kernel, _, channels, features = w.shape
    side = kernel // stride
    w = tf.reshape(w, [side, stride, side, stride, channels, features])
    w = tf.transpose(w, [0, 2, 1, 3, 4, 5])
    return tf.reshape(w, [side, side, stride**2 * channels, features])


def convolve_strided(x: tf.Tensor, w: tf.Tensor, stride: int) -> tf.Tensor:
    """A convolution without padding; the gradient of its inputs is made block by block.

    Args:
      x: `[B, H, W, C]`, H and W multiples of s.
      w: `[k, k, C, F]`, k a multiple of s.
      stride: s.

    Returns:
      `[B, (H - k) / s + 1, (W - k) / s + 1, F]`.
    """
    height, width, channels = x.shape[1:]

    @tf.custom_gradient
    def convolve(
        x: tf.Tensor, w: tf.Tensor
    ) -> tuple[tf.Tensor, Callable[[tf.Tensor], tuple[tf.Tensor, tf.Tensor]]]:
        def gradient(of_y: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
            blocks = [tf.shape(x)[0], height // stride, width // stride, stride**2 * channels]
            kernel = kernel_of_blocks(w, stride)
            of_blocks = tf.nn.conv2d_transpose(of_y, kernel, blocks, 1, "VALID")
            of_w = tf.raw_ops.Conv2DBackpropFilter(
                input=x,
                filter_sizes=w.shape,
                out_backprop=of_y,
                strides=[1, stride, stride, 1],
                padding="VALID",
            )
            return tf.nn.depth_to_space(of_blocks, stride), of_w

        return tf.nn.conv2d(x, w, stride, "VALID"), gradient

    return convolve(x, w)
