"""The gradient of a convolution's weights as it is written, for few channels: a loop over vectors.

    ∂w_{i,j} = Σ_{b,r,c} x_{b,r+i,c+j} ∂y_{b,r,c}

An image has few channels, which fill neither a vector nor a tile, but the features of a layer do.
"""

from collections.abc import Callable
from typing import NamedTuple

from tensor_ops.vector_code import Code, Index, Pointer, Shared, compiled_once

# Sums that a loop keeps in registers: AVX-512 has 32 of them, AVX2 has 16.
MOST_SUMS = {16: 24, 8: 12}


class Layer(NamedTuple):
    """What the loop is compiled for; its stride is 1."""

    rows: int  # of an image
    columns: int
    channels: int
    features: int
    kernel: int  # pixels of its side
    margin: int  # pixels of zeros around an image

    @property
    def size(self) -> int:
        """How many weights there are."""
        return self.kernel**2 * self.channels * self.features


@compiled_once
def weights(layer: Layer) -> Callable[..., None]:
    """What `in_parts` calls with x, ∂y and the sums of each part, a row each.

    x is `[B, rows, columns, channels]` and ∂y `[B, ., ., features]`, both in bfloat16.
    """
    code = Code([Pointer] * 3 + [Index, Index, Shared])
    x, of_y, all_sums, size, parts, taken = code.arguments
    beyond = 2 * layer.margin - layer.kernel + 1
    rows, columns = layer.rows + beyond, layer.columns + beyond
    numbers = layer.columns * layer.channels
    line = numbers + 2 * layer.margin * layer.channels
    # The rows of an image that a row of outputs is made of, with what is around them.
    pixels = code.array(-(-layer.kernel * line // code.lanes) * code.lanes)
    with code.loop(layer.kernel * line, step=code.lanes) as i:
        code.store(code.zeros(), pixels, i)
    # ∂y of that row, with nothing before and after it: a pixel is loaded once for all columns of
    # weights.
    around = layer.kernel - 1
    given = code.array((columns + 2 * around) * code.lanes)
    with code.loop((columns + 2 * around) * code.lanes, step=code.lanes) as i:
        code.store(code.zeros(), given, i)
    taps = layer.kernel * layer.channels
    with code.parts(size, parts, taken) as (part, begin, end):
        sums = code.beyond(all_sums, code.times(part, layer.size))
        with code.loop(layer.size, step=code.lanes) as i:
            code.store(code.zeros(), sums, i)
        with code.loop(end, begin) as image, code.loop(rows) as row:
            with code.loop(layer.kernel) as down:
                to = code.sum(code.times(down, line), layer.margin * layer.channels)
                of_image = code.sum(row, down, -layer.margin)
                with code.where(of_image, layer.rows) as (inside, outside):
                    with inside:
                        at = code.sum(code.times(image, layer.rows), of_image)
                        at = code.times(at, numbers)
                        with code.loop(numbers, step=code.lanes) as i:
                            found = code.load(x, code.sum(at, i), "bfloat16")
                            code.store(found, pixels, code.sum(to, i))
                    with outside, code.loop(numbers, step=code.lanes) as i:
                        code.store(code.zeros(), pixels, code.sum(to, i))
            outputs = code.times(code.sum(code.times(image, rows), row), columns)
            with code.loop(layer.features, step=code.lanes) as feature:
                with code.loop(columns) as column:
                    at = code.times(code.sum(outputs, column), layer.features)
                    to = code.times(code.sum(column, around), code.lanes)
                    code.store(code.load(of_y, code.sum(at, feature), "bfloat16"), given, to)
                    ahead = code.sum(at, feature, columns * layer.features)
                    code.prefetch(of_y, ahead, "bfloat16")  # the next row
                with code.loop(layer.kernel) as down:
                    # A row is summed apart from those before it, which keeps digits.
                    totals = code.variables([code.zeros()] * taps)
                    with code.loop(columns + around) as column:
                        last = code.times(code.sum(column, around), code.lanes)
                        of = [
                            code.load(given, code.sum(last, -right * code.lanes))
                            for right in range(layer.kernel)
                        ]
                        pixel = code.sum(code.times(down, line), code.times(column, layer.channels))
                        for channel in range(layer.channels):
                            factor = code.spread(pixels, code.sum(pixel, channel))
                            for right in range(layer.kernel):
                                total = totals[right * layer.channels + channel]
                                total.set(total.get() + factor * of[right])
                    first = code.sum(code.times(down, taps * layer.features), feature)
                    for tap, total in enumerate(totals):
                        at = code.sum(first, tap * layer.features)
                        code.store(code.load(sums, at) + total.get(), sums, at)
    return code.compiled()
