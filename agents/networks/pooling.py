"""Max-pooling of 3 x 3 pixels at every other one, with a gradient of two compiled loops.

The first loop finds at which of its window's nine places each output stood, the second gathers at
each pixel what belongs to the windows that found it:

    x [B, H, W, C], y [B, h, w, C]  -->  places [B, h, w, C] uint8  -->  ∂x [B, H, W, C]

TensorFlow's kernel, `MaxPoolGrad`, takes five times as long.
"""

from collections.abc import Callable

import numpy as np
import tensorflow as tf

from agents.networks.layers import of_sum

_NOWHERE, _OUTSIDE = 9, 10  # of a window that is none, and of a pixel that a window does not hold
_Offsets = tuple[int | None, int | None]  # of a block's two rows or columns in a window's three


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
    x = x + b
    y = tf.nn.max_pool2d(x, ksize=3, strides=2, padding="SAME")

    @tf.custom_gradient
    def of_pixels(of_y: tf.Tensor) -> tuple[tf.Tensor, Callable[[tf.Tensor], tf.Tensor]]:
        places = _places(_padded(x, x.dtype.min), y)
        given = _to_places(places, of_y, *x.shape[1:3])
        return given, lambda values: _at_places(places, _padded(values, 0))

    def gradient(of_y: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        of_y, of_b = of_sum(of_y)
        return of_pixels(of_y), of_b

    return y, gradient


@tf.function(jit_compile=True, autograph=False)
def _places(padded: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
    """The first place, row by row from 0 to 8, where each output is in its window: uint8."""
    found = tf.zeros_like(y, tf.uint8)
    for place, candidate in reversed(list(enumerate(_windows(padded)))):
        found = tf.where(candidate == y, tf.constant(place, tf.uint8), found)
    return found


@tf.function(jit_compile=True, autograph=False)
def _at_places(places: tf.Tensor, padded: tf.Tensor) -> tf.Tensor:
    """Of each window, what stands at its place."""
    found = tf.zeros_like(places, padded.dtype)
    for place, value in enumerate(_windows(padded)):
        found = tf.where(places == place, value, found)
    return found


def _to_places(places: tf.Tensor, of_y: tf.Tensor, height: int, width: int) -> tf.Tensor:
    """At each pixel the sum of what belongs to the windows that have their place there."""
    sides = map(_margins, (height, width))
    around = [[0, 0], *([1 - before, before] for before, _ in sides), [0, 0]]
    places = tf.pad(places, around, constant_values=_NOWHERE)
    return _of_neighbours(places, tf.pad(of_y, around), height, width)


@tf.function(jit_compile=True, autograph=False)
def _of_neighbours(places: tf.Tensor, of_y: tf.Tensor, height: int, width: int) -> tf.Tensor:
    """The gradient, by blocks of 2 x 2 pixels, each from its own window and three beside it."""
    rows, columns = (side - 1 for side in places.shape[1:3])
    total = tf.zeros([], tf.float32)
    for down, row in enumerate(_offsets(height)):
        for right, column in enumerate(_offsets(width)):
            place, part = (
                x[:, down : down + rows, tf.newaxis, right : right + columns, tf.newaxis]
                for x in (places, of_y)
            )
            total += tf.where(place == _place(row, column), tf.cast(part, tf.float32), 0.0)
    whole = tf.reshape(total, [-1, 2 * rows, 2 * columns, places.shape[3]])
    return tf.cast(whole[:, :height, :width], of_y.dtype)


def _place(rows: _Offsets, columns: _Offsets) -> np.ndarray:
    """Where in a window each of 2 x 2 pixels stands: `[2, 1, 2, 1]`."""
    places = [
        [_OUTSIDE if row is None or column is None else 3 * row + column for column in columns]
        for row in rows
    ]
    return np.array(places, np.uint8).reshape([2, 1, 2, 1])


def _offsets(side: int) -> tuple[_Offsets, _Offsets]:
    """Where two windows, one after the other, have pixels 2a and 2a + 1."""
    before, _ = _margins(side)
    return ((1, 2), (None, 0)) if before else ((2, None), (0, 1))


def _padded(x: tf.Tensor, around: float) -> tf.Tensor:
    """What `max_pool` thinks around x is written out: TensorFlow does so faster than a loop."""
    return tf.pad(x, [[0, 0], *map(_margins, x.shape[1:3]), [0, 0]], constant_values=around)


def _windows(padded: tf.Tensor) -> list[tf.Tensor]:
    """The nine pixels of each window, row by row, each `[B, ⌈H/2⌉, ⌈W/2⌉, C]`."""
    rows, columns = (side - 2 for side in padded.shape[1:3])
    return [padded[:, i : i + rows : 2, j : j + columns : 2] for i in range(3) for j in range(3)]


def _margins(side: int) -> list[int]:
    """How many pixels `max_pool` thinks before and after so many: 2 ⌈n/2⌉ + 1 with them."""
    missing = 2 * -(-side // 2) + 1 - side
    return [missing // 2, missing - missing // 2]
