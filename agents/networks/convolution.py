"""Convolutions with square kernels, in a precision of their own.

A convolution with stride s and a kernel of k x k pixels, k a multiple of s, is one with stride 1
and a kernel of k/s x k/s blocks of pixels, whose s² C numbers are its channels:

    image [B, H, W, C]  --blocks of s x s pixels-->  [B, H / s, W / s, s² C]

Where there is a loop for it, it goes by Winograd's algorithm (`winograd`), which reads blocks in
the image. In bfloat16 oneDNN takes half the time of that on a processor that multiplies tiles
(AMX), and is left to it, but for the gradients of weights: those are loops over tiles there
(`tiled_code`). What follows is of convolutions without such loops.

Bytes become blocks in no more time than they become fractions, and oneDNN in bfloat16 likes blocks
at least as well, for it multiplies tiles of channels and an image has few. Floats would have to be
moved for it. cuDNN's kernels gain by blocks always, as a GPU multiplies tiles too, and so do those
that TensorFlow has where it does not use oneDNN. There, what has stride 1 has the gradients of
`convolve`, in two thirds of the time of TensorFlow's where channels are few. oneDNN's own take two
thirds of the time of these.
"""

from collections.abc import Callable
from typing import NamedTuple

import sonnet as snt
import tensorflow as tf
from tensorflow.python.util import _pywrap_util_port

from agents.networks import direct_code, tiled_code, vector_code, winograd, xla
from agents.networks.layers import (
    add_beside,
    add_bias,
    as_float,
    make_weights,
    relu,
    relu_beside,
)
from agents.networks.loops import fits, sums_of_parts

_LINE = 2**14  # floats of a row of pixels, of which a loop keeps a kernel's rows


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
          image: `[B, H, W, C]`; bytes become fractions, and blocks where that is quicker, or stay
            bytes where a loop reads them.
        """
        if image.dtype == tf.uint8:
            if self._by_winograd(image):
                return image
            quicker = self._dtype == tf.bfloat16 or not _onednn_convolves()
            if quicker and self._has_blocks(image):
                return Blocks(to_blocks(image, self._stride, self._dtype))
        return as_float(image, self._dtype)

    def __call__(self, x: tf.Tensor | Blocks) -> tf.Tensor:
        """`[B, H, W, C]`, prepared or not -> `[B, H', W', channels]`."""
        if self._by_winograd(x):
            return winograd.convolve(*self._given(x), self._b)
        return add_bias(*self.apart(x))

    def apart(self, x: tf.Tensor | Blocks) -> tuple[tf.Tensor, tf.Tensor]:
        """The same before the bias is added, and the bias `[channels]`."""
        if self._by_winograd(x):
            return winograd.convolve(*self._given(x)), tf.cast(self._b, self._dtype)
        x = x if isinstance(x, Blocks) else tf.cast(x, self._dtype)
        self._create_variables(
            x.pixels.shape[3] // self._stride**2 if isinstance(x, Blocks) else x.shape[3]
        )
        w, b = (tf.cast(value, self._dtype) for value in (self._w, self._b))
        return self._convolve(x, w), b

    def of_relu(self, x: tf.Tensor, beside: tf.Tensor | None = None) -> tf.Tensor:
        """What the layer makes of max(x, 0); `beside`, `[B, H', W', channels]`, is added."""
        if self._by_winograd(x):
            return winograd.convolve(*self._given(x), self._b, after_relu=True, beside=beside)
        if beside is None:
            return self(relu(x))
        return add_beside(beside, *self.apart(relu(x)))

    def of_relu_beside(self, x: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """What the layer makes of max(x, 0), and x itself, which passes by."""
        if self._by_winograd(x):
            x, w, _, padding, _ = self._given(x)
            return winograd.convolve_beside(x, w, padding, self._b)
        y, x = relu_beside(x)
        return self(y), x

    def _by_winograd(self, x: tf.Tensor | Blocks) -> bool:
        by_tiles = self._dtype == tf.bfloat16 and vector_code.has_tiles() and _onednn_convolves()
        if by_tiles or isinstance(x, Blocks):
            return False
        return winograd.convolves(x, self._kernel, self._stride, self._padding, self._channels)

    def _given(self, x: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor, int, str, tf.DType]:
        x = tf.convert_to_tensor(x)
        self._create_variables(x.shape[3])
        x = x if x.dtype == tf.uint8 else tf.cast(x, self._dtype)
        w = kernel_of_blocks(self._w, self._stride)
        return x, w, self._stride, self._padding, self._dtype

    def _convolve(self, x: tf.Tensor | Blocks, w: tf.Tensor) -> tf.Tensor:
        if isinstance(x, Blocks):
            return convolve(x.pixels, kernel_of_blocks(w, self._stride))
        if not _onednn_convolves() and self._has_blocks(x):  # oneDNN strides well over floats
            return convolve(
                tf.nn.space_to_depth(x, self._stride), kernel_of_blocks(w, self._stride)
            )
        if _onednn_convolves() or (self._stride == 1 and self._padding == "SAME"):
            return convolve(x, w, self._padding, self._stride)
        return tf.nn.conv2d(x, w, self._stride, self._padding)

    def _has_blocks(self, image: tf.Tensor) -> bool:
        """Whether the kernel strides over whole blocks of more than one pixel."""
        if self._padding != "VALID" or self._stride == 1:
            return False
        return not any(side % self._stride for side in (self._kernel, *image.shape[1:3]))

    @snt.once
    def _create_variables(self, num_channels: int) -> None:
        shape = [self._kernel, self._kernel, num_channels, self._channels]
        self._w = make_weights(shape, self._w_init)
        self._b = tf.Variable(tf.zeros([self._channels]), name="b")


def uses_onednn() -> bool:
    """Whether TensorFlow takes oneDNN's kernels: it looks at the processor.

    The variable TF_ENABLE_ONEDNN_OPTS, 0 or 1, says otherwise.
    """
    return bool(_pywrap_util_port.IsMklEnabled())


def _onednn_convolves() -> bool:
    return uses_onednn() and not tf.config.list_logical_devices("GPU")


def to_blocks(image: tf.Tensor, stride: int, dtype: tf.DType = tf.float32) -> tf.Tensor:
    """Cuts an image into blocks: `[B, H, W, C]` -> `[B, H / s, W / s, s² C]` of that type.

    Bytes become fractions on the way: one loop moves and divides them, in a fifth of the time that
    `tf.nn.space_to_depth` takes.
    """
    height, width, channels = image.shape[1:]
    rows, columns = height // stride, width // stride
    lines = tf.reshape(image, [-1, rows, stride, columns, stride * channels])
    return tf.reshape(_to_blocks(lines, dtype), [-1, rows, columns, stride**2 * channels])


# What is reshaped in here, its loop would find number by number.
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
    """What `kernel_of_blocks` undone gives: numbers of a kernel over blocks -> `[k, k, C, F]`."""
    w = tf.reshape(w, [side, side, stride, stride, channels, features])
    if stride > 1:
        w = tf.transpose(w, [0, 2, 1, 3, 4, 5])
    return tf.reshape(w, [side * stride, side * stride, channels, features])


def convolve(x: tf.Tensor, w: tf.Tensor, padding: str = "VALID", stride: int = 1) -> tf.Tensor:
    """A convolution, with gradients of its own where oneDNN has none or a loop is sooner.

    That of the inputs is a convolution, that of the weights one product of matrices, or a loop:

        ∂x = ∂y * w turned by half a turn,   ∂w = Σ_{b,r,c} x_{b,r+i,c+j} ∂y_{b,r,c}

    Args:
      x: `[B, H, W, C]`.
      w: `[k, k, C, F]`.
      padding: `VALID`, or `SAME`.
      stride: 1 where oneDNN does not convolve.

    Returns:
      `[B, H', W', F]`.
    """
    loop = _loop_of_weights(x, w, padding, stride)
    # oneDNN and cuDNN have kernels for both.
    if loop is None and (uses_onednn() or tf.config.list_logical_devices("GPU")):
        return tf.nn.conv2d(x, w, stride, padding)

    @tf.custom_gradient
    def run(
        x: tf.Tensor, w: tf.Tensor
    ) -> tuple[tf.Tensor, Callable[[tf.Tensor], tuple[tf.Tensor, tf.Tensor]]]:
        def gradient(of_y: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
            of_x = _of_inputs(of_y, w, padding, stride)
            if loop is None:
                return of_x, _of_weights(x, of_y, w.shape[0], padding)
            return of_x, _of_weights_by(loop, x, of_y, padding, stride)

        return tf.nn.conv2d(x, w, stride, padding), gradient

    return run(x, w)


def _of_inputs(of_y: tf.Tensor, w: tf.Tensor, padding: str, stride: int) -> tf.Tensor:
    w = kernel_of_blocks(w, stride)
    turned = tf.transpose(tf.reverse(w, [0, 1]), [0, 1, 3, 2])
    before, after = (w.shape[0] - 1 - margin for margin in _margins(w.shape[0], padding))
    margins = [[before, after]] * 2
    return _to_pixels(tf.nn.conv2d(of_y, turned, 1, [[0, 0], *margins, [0, 0]]), stride)


def _of_weights(x: tf.Tensor, of_y: tf.Tensor, kernel: int, padding: str) -> tf.Tensor:
    """One product of matrices: what is moved against what for each of the k x k weights.

    Rows are moved in ∂y. So are columns where they are two; where they are more, a third of that
    is moved when columns are moved in x.
    """
    before, after = _margins(kernel, padding)
    x = tf.pad(x, [[0, 0], [before, after], [before, after], [0, 0]])
    columns, channels, features = of_y.shape[2], x.shape[3], of_y.shape[3]
    moves = range(kernel)
    if kernel > 2:
        x = tf.concat([x[:, :, j : j + columns] for j in moves], -1)
        moved = [_padded(of_y, i, 0, kernel, 1) for i in moves]
    else:
        moved = [_padded(of_y, i, j, kernel, kernel) for i in moves for j in moves]
    rows = tf.concat(moved, -1)
    product = tf.matmul(
        tf.reshape(x, [-1, x.shape[3]]), tf.reshape(rows, [-1, rows.shape[3]]), transpose_a=True
    )
    if kernel > 2:
        found = tf.reshape(product, [kernel, channels, kernel, features])
        return tf.transpose(found, [2, 0, 1, 3])
    found = tf.reshape(product, [channels, kernel, kernel, features])
    return tf.transpose(found, [1, 2, 0, 3])


def _loop_of_weights(
    x: tf.Tensor, w: tf.Tensor, padding: str, stride: int
) -> direct_code.Layer | tiled_code.Layer | None:
    """What the loop for the gradient of the weights is compiled for, where there is one.

    oneDNN's takes one and a half to four times as long in bfloat16, and no longer in float32.
    """
    kernel, _, channels, features = w.shape
    before, after = _margins(kernel, padding)
    if x.dtype != tf.bfloat16 or None in x.shape[1:] or not fits():
        return None
    rows, columns = x.shape[1:3]
    if min(rows, columns) + 2 * before < kernel or before != after:
        return None
    few = kernel * channels <= direct_code.MOST_SUMS[vector_code.lanes()]
    if few and stride == 1 and fits(features, columns * channels) and columns * channels <= _LINE:
        return direct_code.Layer(rows, columns, channels, features, kernel, before)
    whole = padding == "VALID" and not any(side % stride for side in (rows, columns, kernel))
    if not vector_code.has_tiles() or (stride > 1 and not whole):
        return None
    rows, columns, kernel = (side // stride for side in (rows, columns, kernel))
    layer = tiled_code.Layer(rows, columns, channels, features, kernel, before, stride)
    return layer if tiled_code.fits(layer) else None


@tf.autograph.experimental.do_not_convert
def _of_weights_by(
    loop: direct_code.Layer | tiled_code.Layer,
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

        if isinstance(loop, tiled_code.Layer):
            compiled = tiled_code.weights(loop)
        else:
            compiled = direct_code.weights(loop)
        total = sums_of_parts(compiled, [x, of_y], loop.size)
        of_w = _kernel_of_pixels(total, loop.kernel, stride, loop.channels, loop.features)
        return tf.cast(of_w, of_y.dtype), gradient

    return run(x, tf.convert_to_tensor(of_y))  # of images that were gathered it is none


def _padded(of_y: tf.Tensor, i: int, j: int, rows: int, columns: int) -> tf.Tensor:
    return tf.pad(of_y, [[0, 0], [i, rows - 1 - i], [j, columns - 1 - j], [0, 0]])


def _margins(kernel: int, padding: str) -> tuple[int, int]:
    around = kernel - 1 if padding == "SAME" else 0
    return around // 2, around - around // 2
