"""Convolutions with square kernels, in a precision of their own.

A convolution with stride s and a kernel of k x k pixels, k a multiple of s, is one with stride 1
and a kernel of k/s x k/s blocks of pixels, whose s² C numbers are its channels:

    image [B, H, W, C]  --blocks of s x s pixels-->  [B, H / s, W / s, s² C]

Winograd's algorithm computes it where there is a loop for that layer (`winograd`); the loop reads
blocks directly from the image. On a processor that multiplies tiles (AMX), oneDNN needs half that
time in bfloat16, so oneDNN computes the convolution and its gradient by the inputs there. A loop
over tiles computes the gradient by the weights (`tiled_code`). This file handles the other layers.

Bytes become blocks in no more time than they become fractions. oneDNN in bfloat16 is at least as
fast over blocks, because it multiplies tiles of channels and an image has few channels. Floats
stay as they are on processors, because moving them costs more than it gains. cuDNN is always
faster over blocks, because a GPU multiplies tiles too.
"""

from collections.abc import Callable

import tensorflow as tf

from tensor_ops import tiled_code, vector_code, winograd, xla
from tensor_ops.elementwise import add_beside, add_bias, as_float, relu
from tensor_ops.loops import fits, sums_of_parts
from tensor_ops.pooling import max_pool


def conv2d(
    x: tf.Tensor,
    w: tf.Tensor,
    b: tf.Tensor,
    *,
    stride: int = 1,
    padding: str = "SAME",
    dtype: tf.DType = tf.float32,
    after_relu: bool = False,
    plus: tf.Tensor | None = None,
    pool: bool = False,
) -> tf.Tensor:
    """A convolution with square kernels, and the operations around it.

    Args:
      x: `[B, H, W, C]`; bytes are fractions of 255.
      w: `[k, k, C, F]`, float32.
      b: `[F]`, float32.
      stride: pixels.
      padding: `VALID` or `SAME`.
      dtype: of the arithmetic and of the outputs.
      after_relu: the convolution is one of max(x, 0).
      plus: `[B, H', W', F]`, to be added; None is nothing.
      pool: the outputs are max-pooled; then there is no `plus`.

    Returns:
      `[B, H', W', F]`, differentiable any number of times.
    """
    x = tf.convert_to_tensor(x)
    kernel, features = w.shape[0], w.shape[3]
    if _by_winograd(x, kernel, stride, padding, features, dtype):
        x = x if x.dtype == tf.uint8 else tf.cast(x, dtype)
        y = winograd.convolve(
            x,
            kernel_of_blocks(w, stride),
            stride,
            padding,
            dtype,
            None if pool else b,
            after_relu=after_relu,
            beside=plus,
        )
        return max_pool(y, tf.cast(b, dtype)) if pool else y
    w, b = tf.cast(w, dtype), tf.cast(b, dtype)
    y = _convolve(relu(x) if after_relu else x, w, stride, padding)
    if pool:
        return max_pool(y, b)
    return add_bias(y, b) if plus is None else add_beside(plus, y, b)


def _by_winograd(
    x: tf.Tensor, kernel: int, stride: int, padding: str, features: int, dtype: tf.DType
) -> bool:
    if dtype == tf.bfloat16 and vector_code.has_tiles() and not xla.has_gpu():
        return False
    return winograd.convolves(x, kernel, stride, padding, features)


def _convolve(x: tf.Tensor, w: tf.Tensor, stride: int, padding: str) -> tf.Tensor:
    """The convolution alone, in the type of w."""
    if _has_blocks(x, w.shape[0], stride, padding):
        if x.dtype == tf.uint8 and (w.dtype == tf.bfloat16 or xla.has_gpu()):
            return convolve(to_blocks(x, stride, w.dtype), kernel_of_blocks(w, stride))
        if xla.has_gpu():  # oneDNN strides well over floats
            x = tf.nn.space_to_depth(as_float(x, w.dtype), stride)
            return convolve(x, kernel_of_blocks(w, stride))
    return convolve(as_float(x, w.dtype), w, padding, stride)


def _has_blocks(image: tf.Tensor, kernel: int, stride: int, padding: str) -> bool:
    """Returns whether the kernel strides over whole blocks of more than one pixel."""
    if padding != "VALID" or stride == 1:
        return False
    return not any(side % stride for side in (kernel, *image.shape[1:3]))


def to_blocks(image: tf.Tensor, stride: int, dtype: tf.DType = tf.float32) -> tf.Tensor:
    """Cuts an image into blocks: `[B, H, W, C]` -> `[B, H / s, W / s, s² C]` of that type.

    Bytes become fractions on the way: one loop moves and divides them, in a fifth of the time that
    `tf.nn.space_to_depth` takes.
    """
    height, width, channels = image.shape[1:]
    rows, columns = height // stride, width // stride
    lines = tf.reshape(image, [-1, rows, stride, columns, stride * channels])
    return tf.reshape(_to_blocks(lines, dtype), [-1, rows, columns, stride**2 * channels])


# XLA would compute a reshape within the loop number by number.
@xla.compiled
def _to_blocks(lines: tf.Tensor, dtype: tf.DType) -> tf.Tensor:
    return as_float(tf.transpose(lines, [0, 1, 3, 2, 4]), dtype)


def _to_pixels(blocks: tf.Tensor, stride: int) -> tf.Tensor:
    """`[B, H / s, W / s, s² C]` -> `[B, H, W, C]`."""
    if stride == 1:
        return blocks
    rows, columns, depth = blocks.shape[1:]
    channels = depth // stride**2
    lines = tf.reshape(blocks, [-1, rows, columns, stride, stride * channels])
    return tf.reshape(_turned(lines), [-1, rows * stride, columns * stride, channels])


@xla.compiled
def _turned(lines: tf.Tensor) -> tf.Tensor:
    return tf.transpose(lines, [0, 1, 3, 2, 4])


def kernel_of_blocks(w: tf.Tensor, stride: int) -> tf.Tensor:
    """A kernel over pixels `[k, k, C, F]` -> over blocks of them `[k / s, k / s, s² C, F]`."""
    kernel, _, channels, features = w.shape
    if stride == 1:
        return tf.convert_to_tensor(w)
    side = kernel // stride
    w = tf.reshape(w, [side, stride, side, stride, channels, features])
    w = tf.transpose(w, [0, 2, 1, 3, 4, 5])
    return tf.reshape(w, [side, side, stride**2 * channels, features])


def _kernel_of_pixels(
    w: tf.Tensor, side: int, stride: int, channels: int, features: int
) -> tf.Tensor:
    """The inverse of `kernel_of_blocks`: a kernel over blocks, flat -> `[k, k, C, F]`."""
    w = tf.reshape(w, [side, side, stride, stride, channels, features])
    if stride > 1:
        w = tf.transpose(w, [0, 2, 1, 3, 4, 5])
    return tf.reshape(w, [side * stride, side * stride, channels, features])


def convolve(x: tf.Tensor, w: tf.Tensor, padding: str = "VALID", stride: int = 1) -> tf.Tensor:
    """A convolution. Its gradients are our own where a loop is faster for the weights' gradient.

    The gradient by the inputs is a convolution, the one by the weights a loop (`tiled_code`):

        ∂x = ∂y * w turned by half a turn,   ∂w = Σ_{b,r,c} x_{b,r+i,c+j} ∂y_{b,r,c}

    Args:
      x: `[B, H, W, C]`.
      w: `[k, k, C, F]`.
      padding: `VALID`, or `SAME`.
      stride: pixels.

    Returns:
      `[B, H', W', F]`.
    """
    loop = _loop_of_weights(x, w, padding, stride)
    if loop is None:
        return tf.nn.conv2d(x, w, stride, padding)

    @tf.custom_gradient
    def run(
        x: tf.Tensor, w: tf.Tensor
    ) -> tuple[tf.Tensor, Callable[[tf.Tensor], tuple[tf.Tensor, tf.Tensor]]]:
        def gradient(of_y: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
            of_w = _of_weights(loop, x, of_y, padding, stride)
            return _of_inputs(of_y, w, padding, stride), of_w

        return tf.nn.conv2d(x, w, stride, padding), gradient

    return run(x, w)


def _of_inputs(of_y: tf.Tensor, w: tf.Tensor, padding: str, stride: int) -> tf.Tensor:
    w = kernel_of_blocks(w, stride)
    turned = tf.transpose(tf.reverse(w, [0, 1]), [0, 1, 3, 2])
    before, after = (w.shape[0] - 1 - margin for margin in _margins(w.shape[0], padding))
    margins = [[before, after]] * 2
    return _to_pixels(tf.nn.conv2d(of_y, turned, 1, [[0, 0], *margins, [0, 0]]), stride)


def _loop_of_weights(
    x: tf.Tensor, w: tf.Tensor, padding: str, stride: int
) -> tiled_code.Layer | None:
    """The layer that the loop for the weights' gradient is compiled for; None without a loop.

    The loop multiplies tiles (AMX). oneDNN takes 1.5 to 4 times as long in bfloat16.
    """
    kernel, _, channels, features = w.shape
    before, after = _margins(kernel, padding)
    if x.dtype != tf.bfloat16 or None in x.shape[1:] or not vector_code.has_tiles() or not fits():
        return None
    rows, columns = x.shape[1:3]
    if min(rows, columns) + 2 * before < kernel or before != after:
        return None
    if stride > 1 and not _has_blocks(x, kernel, stride, padding):
        return None
    rows, columns, kernel = (side // stride for side in (rows, columns, kernel))
    layer = tiled_code.Layer(rows, columns, channels, features, kernel, before, stride)
    return layer if tiled_code.fits(layer) else None


@tf.autograph.experimental.do_not_convert
def _of_weights(
    loop: tiled_code.Layer,
    x: tf.Tensor,
    of_y: tf.Tensor,
    padding: str,
    stride: int,
) -> tf.Tensor:
    @tf.custom_gradient
    def run(
        x: tf.Tensor, of_y: tf.Tensor
    ) -> tuple[tf.Tensor, Callable[[tf.Tensor], tuple[tf.Tensor, tf.Tensor]]]:
        def gradient(of_w: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
            return _of_inputs(of_y, of_w, padding, stride), convolve(x, of_w, padding, stride)

        total = sums_of_parts(tiled_code.weights(loop), [x, of_y], loop.size)
        of_w = _kernel_of_pixels(total, loop.kernel, stride, loop.channels, loop.features)
        return tf.cast(of_w, of_y.dtype), gradient

    return run(x, tf.convert_to_tensor(of_y))  # of images that were gathered it is none


def _margins(kernel: int, padding: str) -> tuple[int, int]:
    around = kernel - 1 if padding == "SAME" else 0
    return around // 2, around - around // 2
