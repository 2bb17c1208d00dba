"""Convolutions with a half to a quarter of the multiplications (Lavin & Gray 2015).

Winograd's F(m x m, r x r): a tile of m x m outputs needs (m + r - 1)² products of numbers that are
sums of its inputs, where a direct convolution needs m² r²: 36 and not 144 for m = 4 and r = 3. The
equations and the loops are in `winograd_code`; here are a layer's operations around them. A
convolution that strides over s pixels is one with stride 1 over blocks of s x s pixels
(`convolution`); the loops read blocks directly from the image.

The arithmetic is float32, also where images are bfloat16 or bytes. Errors are some 1e-6 of the
outputs' size.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from tensor_ops.loops import Output, fits, in_parts, sums_of_parts
from tensor_ops.winograd_code import ARRAYS, Extras, Images, Layer, forwards, weights

_KERNELS = (2, 3)  # blocks of a side: beyond, the sums lose digits
_CACHE = 2**20  # bytes that a loop may use of a core's own cache


def convolves(x: tf.Tensor, kernel: int, stride: int, padding: str, features: int) -> bool:
    """Returns whether `convolve` has a loop for such images `[B, H, W, C]`, which is quicker then.

    There is one on processors with vectors, where whole vectors fill a line of a block and the
    features.
    """
    shape = tf.TensorShape(x.shape)
    if shape.rank != 4 or None in shape[1:]:
        return False
    height, width, channels = shape[1:]
    if kernel % stride or kernel // stride not in _KERNELS or height % stride or width % stride:
        return False
    if (padding == "SAME" and (kernel, stride) != (3, 1)) or min(height, width) < kernel:
        return False
    if not fits(stride * channels, features):
        return False
    around = _Around(_margin(padding), stride)
    layer = _layer(x, tf.float32, features, kernel // stride, around)
    return layer.share_used >= 0.5 and layer.bytes_within <= _CACHE


def convolve(
    x: tf.Tensor,
    w: tf.Tensor,
    stride: int,
    padding: str,
    dtype: tf.DType,
    b: tf.Tensor | None = None,
    *,
    after_relu: bool = False,
    beside: tf.Tensor | None = None,
) -> tf.Tensor:
    """A convolution and the operations around it, where `convolves` is true.

    Args:
      x: `[B, H, W, C]`: bytes, which are fractions, or of the outputs' type.
      w: over blocks of pixels, `[k / s, k / s, s² C, F]`, float32.
      stride: s, pixels.
      padding: `VALID`, or for 3 x 3 pixels `SAME`.
      dtype: of the outputs, float32 or bfloat16.
      b: `[F]`, float32, to be added.
      after_relu: the convolution is one of max(x, 0).
      beside: `[B, H', W', F]`, to be added.

    Returns:
      `[B, H', W', F]`, differentiable any number of times.
    """
    around = _Around(_margin(padding), stride, after_relu=after_relu)
    return _convolve(x, w, dtype, around, {"b": b, "beside": beside})


class _Around(NamedTuple):
    """The rest of a convolution's description."""

    margin: int  # blocks of zeros around an image
    block: int = 1  # pixels of the side of an input's block
    output_block: int = 1
    after_relu: bool = False

    def turned(self, kernel: int) -> "_Around":
        """The description of the gradient's way back to the inputs."""
        return _Around(kernel - 1 - self.margin, self.output_block, self.block)


@tf.autograph.experimental.do_not_convert
def _convolve(
    x: tf.Tensor,
    w: tf.Tensor,
    dtype: tf.DType,
    around: _Around,
    arrays: Mapping[str, tf.Tensor | None],
) -> tf.Tensor:
    """beside + (conv(x or max(x, 0)) + b, where positive > 0, or else 0)."""
    given = {name: value for name, value in arrays.items() if value is not None}

    @tf.custom_gradient
    def run(
        x: tf.Tensor, w: tf.Tensor, *values: tf.Tensor
    ) -> tuple[tf.Tensor, Callable[[tf.Tensor], tuple[tf.Tensor | None, ...]]]:
        named = dict(zip(given, values, strict=True))

        def gradient(of_y: tf.Tensor) -> tuple[tf.Tensor | None, ...]:
            of_y = tf.convert_to_tensor(of_y)  # of images that were gathered it is none
            of = {"beside": of_y, "positive": None}
            if "positive" in named:
                of_y = tf.where(named["positive"] > 0, of_y, tf.zeros_like(of_y))
            of_w, of["b"] = _of_weights(x, of_y, w.shape[0], around)
            of_x = None if x.dtype == tf.uint8 else _of_inputs(x, w, of_y, around, {})
            return of_x, of_w, *(of[name] for name in named)

        layer = _layer(x, dtype, w.shape[3], w.shape[0], around)
        extras = Extras(around.after_relu, *(name in named for name in ARRAYS))
        unused = tf.zeros([0])
        inputs = [x, _transformed(w, layer), *(named.get(name, unused) for name in ARRAYS)]
        outputs, side = layer.outputs, around.output_block
        size = [outputs.rows * side, outputs.columns * side, outputs.channels // side**2]
        output = Output([tf.shape(x)[0], *size], dtype)
        (y,) = in_parts(forwards(layer, extras), inputs, [output])
        return y, gradient

    return run(x, w, *given.values())


def _of_inputs(
    x: tf.Tensor,
    w: tf.Tensor,
    of_y: tf.Tensor,
    around: _Around,
    arrays: Mapping[str, tf.Tensor | None],
) -> tf.Tensor:
    turned = tf.transpose(tf.reverse(w, [0, 1]), [0, 1, 3, 2])
    arrays = {**arrays, "positive": x if around.after_relu else None}
    return _convolve(of_y, turned, of_y.dtype, around.turned(w.shape[0]), arrays)


@tf.autograph.experimental.do_not_convert
def _of_weights(
    x: tf.Tensor, of_y: tf.Tensor, kernel: int, around: _Around
) -> tuple[tf.Tensor, tf.Tensor]:
    """The gradients of weights and biases, float32."""

    @tf.custom_gradient
    def run(
        x: tf.Tensor, of_y: tf.Tensor
    ) -> tuple[tuple[tf.Tensor, tf.Tensor], Callable[..., tuple[tf.Tensor | None, tf.Tensor]]]:
        def gradient(of_w: tf.Tensor, of_b: tf.Tensor) -> tuple[tf.Tensor | None, tf.Tensor]:
            of_x = None if x.dtype == tf.uint8 else _of_inputs(x, of_w, of_y, around, {})
            return of_x, _convolve(x, of_w, of_y.dtype, around, {"b": of_b})

        features = of_y.shape[3] * around.output_block**2
        layer = _layer(x, of_y.dtype, features, kernel, around)
        run_parts = weights(layer, around.after_relu)
        total = sums_of_parts(run_parts, [x, of_y], layer.num_products + features)
        products = tf.reshape(total[: layer.num_products], [layer.side**2, -1])
        of_w = tf.matmul(_both_ways(layer), products, transpose_a=True)
        of_w = tf.reshape(of_w, [kernel, kernel, layer.inputs.channels, features])
        return (of_w, total[layer.num_products :]), gradient

    return run(x, of_y)


def _layer(x: tf.Tensor, dtype: tf.DType, features: int, kernel: int, around: _Around) -> Layer:
    height, width, channels = x.shape[1:]
    rows, columns = height // around.block, width // around.block
    channels *= around.block**2
    beyond = 2 * around.margin - kernel + 1
    return Layer(
        Images(rows, columns, channels, around.block, x.dtype.name),
        Images(rows + beyond, columns + beyond, features, around.output_block, dtype.name),
        kernel,
        around.margin,
    )


def _margin(padding: str) -> int:
    return {"VALID": 0, "SAME": 1}[padding]


def _transformed(w: tf.Tensor, layer: Layer) -> tf.Tensor:
    """G w Gᵀ: `[r, r, C, F]` -> `[(m + r - 1)², C, F]`."""
    flat = tf.reshape(w, [layer.kernel**2, -1])
    return tf.reshape(tf.matmul(_both_ways(layer), flat), [-1, *w.shape[2:]])


def _both_ways(layer: Layer) -> tf.Tensor:
    """G for both dimensions at once: `[(m + r - 1)², r²]`."""
    one = layer.matrices.of_weights
    return tf.constant(np.kron(one, one), tf.float32)
