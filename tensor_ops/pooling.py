"""Max-pooling of 3 x 3 pixels at every other one, with a gradient that loops gather.

The place of each output among its window's nine pixels is found once. The gradient gathers at each
pixel the gradients of the windows that found it:

    x [B, H, W, C]  -->  y and uint8 places [B, h, w, C];   places, ∂y  -->  ∂x [B, H, W, C]

Where channels fill the processor's vectors, LLVM compiles both as loops, and the first one writes
places beside the outputs. Elsewhere TensorFlow pools, and XLA compiles a loop that finds the places
and one that gathers: a fifth of the time of TensorFlow's `MaxPoolGrad`.
"""

from collections.abc import Callable

import numpy as np
import tensorflow as tf

from tensor_ops import xla
from tensor_ops.elementwise import of_sum
from tensor_ops.loops import Output, fits, in_parts
from tensor_ops.vector_code import Byte, Code, Index, Pointer, Shared, compiled_once

_ROWS = 2  # of windows at a time
_NOWHERE = 9  # the place in a window that is none
_Offsets = tuple[int | None, int | None]  # of a block's two rows or columns in a window's three
_LINE = 2**15  # floats of a row of pixels; loops keep up to six rows
_OUTSIDE = _NOWHERE + 1  # of a pixel that a window does not hold


@tf.custom_gradient
def max_pool(
    x: tf.Tensor, b: tf.Tensor
) -> tuple[tf.Tensor, Callable[[tf.Tensor], tuple[tf.Tensor, tf.Tensor]]]:
    """The largest of 3 x 3 pixels of x + b, at every other: `[B, H, W, C]` and `[C]` ->
    `[B, ⌈H/2⌉, ⌈W/2⌉, C]`.

    Of equal pixels the first one has the gradient. The gradients of several windows at a pixel are
    added in float32. Each window gives its whole gradient to one pixel. So the gradient of the
    bias is a sum over windows, which are a quarter as many as pixels.
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
    """Returns whether there are loops: a core's own cache must hold some rows of an image."""
    height, width, channels = x.shape[1:]
    return bool(height and width) and fits(channels) and width * channels <= _LINE


def _pooled(x: tf.Tensor, b: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """The outputs, and the place of each in its window."""
    height, width, channels = x.shape[1:]
    shape = [tf.shape(x)[0], -(-height // 2), -(-width // 2), channels]
    run = _loop_of_pool(height, width, channels, x.dtype.name)
    y, places = in_parts(
        run, [x, tf.cast(b, tf.float32)], [Output(shape, x.dtype), Output(shape, tf.uint8)]
    )
    return y, places


def _gathered(places: tf.Tensor, of_y: tf.Tensor, height: int, width: int) -> tf.Tensor:
    """As `_to_places`."""
    shape = [tf.shape(of_y)[0], height, width, of_y.shape[3]]
    run = _loop_of_gather(height, width, of_y.shape[3], of_y.dtype.name)
    return in_parts(run, [places, of_y], [Output(shape, of_y.dtype)])[0]


@xla.compiled
def _places(padded: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
    """The first place of each output in its window, row by row from 0 to 8: uint8."""
    found = tf.zeros_like(y, tf.uint8)
    for place, candidate in reversed(list(enumerate(_windows(padded)))):
        found = tf.where(candidate == y, tf.constant(place, tf.uint8), found)
    return found


@xla.compiled
def _at_places(places: tf.Tensor, padded: tf.Tensor) -> tf.Tensor:
    """The number at each window's place."""
    found = tf.zeros_like(places, padded.dtype)
    for place, value in enumerate(_windows(padded)):
        found = tf.where(places == place, value, found)
    return found


def _to_places(places: tf.Tensor, of_y: tf.Tensor, height: int, width: int) -> tf.Tensor:
    """At each pixel, the sum over the windows with their place there."""
    sides = map(_margins, (height, width))
    around = [[0, 0], *([1 - before, before] for before, _ in sides), [0, 0]]
    places = tf.pad(places, around, constant_values=_NOWHERE)
    return _of_neighbours(places, tf.pad(of_y, around), height, width)


@xla.compiled
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
    """The place in a window of each of 2 x 2 pixels: `[2, 1, 2, 1]`."""
    places = [
        [_OUTSIDE if row is None or column is None else 3 * row + column for column in columns]
        for row in rows
    ]
    return np.array(places, np.uint8).reshape([2, 1, 2, 1])


def _padded(x: tf.Tensor, around: float) -> tf.Tensor:
    """x with the margin that `max_pool` assumes around it: TensorFlow pads faster than a loop."""
    return tf.pad(x, [[0, 0], *map(_margins, x.shape[1:3]), [0, 0]], constant_values=around)


def _windows(padded: tf.Tensor) -> list[tf.Tensor]:
    """The nine pixels of each window, row by row, each `[B, ⌈H/2⌉, ⌈W/2⌉, C]`."""
    rows, columns = (side - 2 for side in padded.shape[1:3])
    return [padded[:, i : i + rows : 2, j : j + columns : 2] for i in range(3) for j in range(3)]


def _offsets(side: int) -> tuple[_Offsets, _Offsets]:
    """The places of pixels 2a and 2a + 1 in two neighbouring windows."""
    before, _ = _margins(side)
    return ((1, 2), (None, 0)) if before else ((2, None), (0, 1))


def _margins(side: int) -> list[int]:
    """The pixels that `max_pool` assumes before and after n: 2 ⌈n/2⌉ + 1 with them."""
    missing = 2 * -(-side // 2) + 1 - side
    return [missing // 2, missing - missing // 2]


@compiled_once
def _loop_of_pool(height: int, width: int, channels: int, kind: str) -> Callable[..., None]:
    """The loop for `in_parts`: it reads x and b, and writes y and places."""
    code = Code([Pointer] * 4 + [Index, Index, Shared])
    x, b, y, places, size, parts, taken = code.arguments
    (above, _), (left, _) = _margins(height), _margins(width)
    rows, columns = -(-height // 2), -(-width // 2)
    line = (2 * columns + 1) * channels
    pixels = code.array((2 * _ROWS + 1) * line)
    nothing = code.numbers(float("-inf"))
    with code.loop((2 * _ROWS + 1) * line, step=code.lanes) as i:
        code.store(nothing, pixels, i)
    with (
        code.parts(size, parts, taken) as (_, begin, end),
        code.loop(end, begin) as image,
        code.loop(rows, step=_ROWS) as first,
    ):
        with code.loop(2 * _ROWS + 1) as row:
            to = row * line + left * channels
            of_image = first * 2 + row - above
            with code.where(of_image, height) as (inside, outside):
                with inside:
                    at = image * height + of_image
                    at = at * (width * channels)
                    with code.loop(channels, step=code.lanes) as channel:
                        bias = code.load(b, channel)
                        with code.loop(width) as column:
                            i = column * channels + channel
                            found = code.load(x, at + i, kind) + bias
                            found = code.as_bfloat16(found) if kind == "bfloat16" else found
                            code.store(found, pixels, to + i)
                with outside, code.loop(width * channels, step=code.lanes) as i:
                    code.store(nothing, pixels, to + i)
        left_over = rows - first
        with (
            code.loop(code.at_most(left_over, _ROWS)) as row,
            code.loop(columns) as column,
            code.loop(channels, step=code.lanes) as channel,
        ):
            window = row * (2 * line) + column * (2 * channels) + channel
            of = [
                code.load(pixels, window + (i * line + j * channels))
                for i in range(3)
                for j in range(3)
            ]
            # The rows of the next windows.
            for ahead in (1, 2):
                pixel = image * height + first * 2 + (2 * _ROWS - above)
                pixel = pixel + row * 2 + ahead
                pixel = pixel * width + column * 2
                for beside in (0, 1):
                    at = (pixel + beside) * channels
                    code.prefetch(x, at + channel, kind)
            # From the middle, which is inside, so that NaN stays NaN.
            found, place = of[4], code.bytes(4)
            for earlier in (3, 2, 1, 0):
                found, place = code.larger(
                    found, of[earlier], place, code.bytes(earlier), or_equal=True
                )
            for later in (5, 6, 7, 8):
                found, place = code.larger(found, of[later], place, code.bytes(later))
            to = image * rows + first + row
            to = (to * columns + column) * channels + channel
            code.store(found, y, to, kind)
            code.store_bytes(place, places, to)
    return code.compiled()


@compiled_once
def _loop_of_gather(height: int, width: int, channels: int, kind: str) -> Callable[..., None]:
    """The loop for `in_parts`: it reads places and ∂y, and writes ∂x."""
    code = Code([Pointer] * 3 + [Index, Index, Shared])
    places, of_y, of_x, size, parts, taken = code.arguments
    (above, _), (left, _) = _margins(height), _margins(width)
    rows, columns = -(-height // 2), -(-width // 2)
    # Windows with nothing around them, and blocks of 2 x 2 pixels.
    line, block_line = (columns + 1) * channels, 2 * columns * channels
    numbers = (_ROWS + 1) * line
    given, ats = code.array(numbers), code.array(numbers, Byte)
    blocks = code.array(2 * _ROWS * block_line)
    with code.loop(numbers, step=code.lanes) as i:
        code.store(code.zeros(), given, i)
        code.store_bytes(code.bytes(_NOWHERE), ats, i)
    with (
        code.parts(size, parts, taken) as (_, begin, end),
        code.loop(end, begin) as image,
        code.loop(rows, step=_ROWS) as first,
    ):
        with code.loop(_ROWS + 1) as row:
            to = row * line + (1 - left) * channels
            window_row = first + row + (above - 1)
            with code.where(window_row, rows) as (inside, outside):
                with inside:
                    at = image * rows + window_row
                    at = at * (columns * channels)
                    with code.loop(columns * channels, step=code.lanes) as i:
                        code.store(code.load(of_y, at + i, kind), given, to + i)
                        code.store_bytes(code.load_bytes(places, at + i), ats, to + i)
                with outside, code.loop(columns * channels, step=code.lanes) as i:
                    code.store(code.zeros(), given, to + i)
        with (
            code.loop(_ROWS) as row,
            code.loop(columns) as column,
            code.loop(channels, step=code.lanes) as channel,
        ):
            window = row * line + column * channels + channel
            next_row = image * rows + first + row + (above + _ROWS)
            ahead = (next_row * columns + column) * channels
            code.prefetch(of_y, ahead + channel, kind)
            code.prefetch(places, ahead + channel, "uint8")
            sums = [[code.zeros(), code.zeros()], [code.zeros(), code.zeros()]]
            for down, in_rows in enumerate(_offsets(height)):
                for right, in_columns in enumerate(_offsets(width)):
                    i = window + (down * line + right * channels)
                    part, at = code.load(given, i), code.load_bytes(ats, i)
                    for r, in_row in enumerate(in_rows):
                        for c, in_column in enumerate(in_columns):
                            if in_row is not None and in_column is not None:
                                sums[r][c] += code.where_equal(at, 3 * in_row + in_column, part)
            to = row * (2 * block_line) + column * (2 * channels) + channel
            for r in range(2):
                for c in range(2):
                    code.store(sums[r][c], blocks, to + (r * block_line + c * channels))
        start = first * 2
        left_over = height - start
        with code.loop(code.at_most(left_over, 2 * _ROWS)) as row:
            to = (image * height + start + row) * (width * channels)
            at = row * block_line
            with code.loop(width * channels, step=code.lanes) as i:
                code.store(code.load(blocks, at + i), of_x, to + i, kind)
    return code.compiled()
