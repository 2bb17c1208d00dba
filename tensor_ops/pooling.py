"""Max-pooling of 3 x 3 pixels at every other one, with a gradient that loops gather.

Which of its window's nine places each output stood at is found once. The gradient gathers at each
pixel what belongs to the windows that found it:

    x [B, H, W, C]  -->  y and uint8 places [B, h, w, C];   places, ∂y  -->  ∂x [B, H, W, C]

On a processor with vectors for the channels both are loops that LLVM compiles (`pooling_code`), and
places come with the outputs. Elsewhere XLA compiles a loop that finds places in what TensorFlow
pooled, and one that gathers: a fifth of the time of TensorFlow's `MaxPoolGrad`.
"""

from collections.abc import Callable

import numpy as np
import tensorflow as tf

from tensor_ops import pooling_code, xla
from tensor_ops.elementwise import of_sum
from tensor_ops.loops import Output, fits, in_parts
from tensor_ops.pooling_code import NOWHERE, Offsets, margins, offsets

_LINE = 2**15  # floats of a row of pixels, of which loops keep up to six
_OUTSIDE = NOWHERE + 1  # of a pixel that a window does not hold


@tf.custom_gradient
def max_pool(
    x: tf.Tensor, b: tf.Tensor
) -> tuple[tf.Tensor, Callable[[tf.Tensor], tuple[tf.Tensor, tf.Tensor]]]:
    """The largest of 3 x 3 pixels of x + b, at every other: `[B, H, W, C]` and `[C]` ->
    `[B, ⌈H/2⌉, ⌈W/2⌉, C]`.

    The first of equal ones is the one that is learned from. What several windows give a pixel is
    added in float32. As each window gives all it has to one pixel, the gradient of the bias is a
    sum over windows, of which there are a quarter as many as pixels.
    """
    loops = _has_loops(x)
    if loops:
        y, places = _pooled(x, b)
    else:
        x = x + b
        y = tf.nn.max_pool2d(x, ksize=3, strides=2, padding="SAME")

    @tf.custom_gradient
    def of_pixels(of_y: tf.Tensor) -> tuple[tf.Tensor, Callable[[tf.Tensor], tf.Tensor]]:
        at = places if loops else _places(_padded(x, x.dtype.min), y)
        gather = _gathered if loops else _to_places
        return gather(at, of_y, *x.shape[1:3]), lambda values: _at_places(at, _padded(values, 0))

    def gradient(of_y: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        of_y, of_b = of_sum(of_y)
        return of_pixels(of_y), of_b

    return y, gradient


def _has_loops(x: tf.Tensor) -> bool:
    """They keep some rows of an image: where a core's own cache holds those."""
    height, width, channels = x.shape[1:]
    return bool(height and width) and fits(channels) and width * channels <= _LINE


def _pooled(x: tf.Tensor, b: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """The outputs, and where in its window each stood."""
    height, width, channels = x.shape[1:]
    shape = [tf.shape(x)[0], -(-height // 2), -(-width // 2), channels]
    run = pooling_code.pool(height, width, channels, x.dtype.name)
    y, places = in_parts(
        run, [x, tf.cast(b, tf.float32)], [Output(shape, x.dtype), Output(shape, tf.uint8)]
    )
    return y, places


def _gathered(places: tf.Tensor, of_y: tf.Tensor, height: int, width: int) -> tf.Tensor:
    """As `_to_places`."""
    shape = [tf.shape(of_y)[0], height, width, of_y.shape[3]]
    run = pooling_code.gather(height, width, of_y.shape[3], of_y.dtype.name)
    return in_parts(run, [places, of_y], [Output(shape, of_y.dtype)])[0]


@xla.compiled
def _places(padded: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
    """The first place, row by row from 0 to 8, where each output is in its window: uint8."""
    found = tf.zeros_like(y, tf.uint8)
    for place, candidate in reversed(list(enumerate(_windows(padded)))):
        found = tf.where(candidate == y, tf.constant(place, tf.uint8), found)
    return found


@xla.compiled
def _at_places(places: tf.Tensor, padded: tf.Tensor) -> tf.Tensor:
    """Of each window, what stands at its place."""
    found = tf.zeros_like(places, padded.dtype)
    for place, value in enumerate(_windows(padded)):
        found = tf.where(places == place, value, found)
    return found


def _to_places(places: tf.Tensor, of_y: tf.Tensor, height: int, width: int) -> tf.Tensor:
    """At each pixel the sum of what belongs to the windows that have their place there."""
    sides = map(margins, (height, width))
    around = [[0, 0], *([1 - before, before] for before, _ in sides), [0, 0]]
    places = tf.pad(places, around, constant_values=NOWHERE)
    return _of_neighbours(places, tf.pad(of_y, around), height, width)


@xla.compiled
def _of_neighbours(places: tf.Tensor, of_y: tf.Tensor, height: int, width: int) -> tf.Tensor:
    """The gradient, by blocks of 2 x 2 pixels, each from its own window and three beside it."""
    rows, columns = (side - 1 for side in places.shape[1:3])
    total = tf.zeros([], tf.float32)
    for down, row in enumerate(offsets(height)):
        for right, column in enumerate(offsets(width)):
            place, part = (
                x[:, down : down + rows, tf.newaxis, right : right + columns, tf.newaxis]
                for x in (places, of_y)
            )
            total += tf.where(place == _place(row, column), tf.cast(part, tf.float32), 0.0)
    whole = tf.reshape(total, [-1, 2 * rows, 2 * columns, places.shape[3]])
    return tf.cast(whole[:, :height, :width], of_y.dtype)


def _place(rows: Offsets, columns: Offsets) -> np.ndarray:
    """Where in a window each of 2 x 2 pixels stands: `[2, 1, 2, 1]`."""
    places = [
        [_OUTSIDE if row is None or column is None else 3 * row + column for column in columns]
        for row in rows
    ]
    return np.array(places, np.uint8).reshape([2, 1, 2, 1])


def _padded(x: tf.Tensor, around: float) -> tf.Tensor:
    """What `max_pool` thinks around x is written out: TensorFlow does so faster than a loop."""
    return tf.pad(x, [[0, 0], *map(margins, x.shape[1:3]), [0, 0]], constant_values=around)


def _windows(padded: tf.Tensor) -> list[tf.Tensor]:
    """The nine pixels of each window, row by row, each `[B, ⌈H/2⌉, ⌈W/2⌉, C]`."""
    rows, columns = (side - 2 for side in padded.shape[1:3])
    return [padded[:, i : i + rows : 2, j : j + columns : 2] for i in range(3) for j in range(3)]
