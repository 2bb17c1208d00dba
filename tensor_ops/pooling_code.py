"""Max-pooling and its gradient as loops over vectors of channels.

Both keep what some rows of windows need of an image, with what stands around it, in a core's own
cache.
"""

from collections.abc import Callable

from tensor_ops.vector_code import Byte, Code, Index, Pointer, Shared, compiled_once

_ROWS = 2  # of windows at a time
NOWHERE = 9  # the place in a window that is none
Offsets = tuple[int | None, int | None]  # of a block's two rows or columns in a window's three


@compiled_once
def pool(height: int, width: int, channels: int, kind: str) -> Callable[..., None]:
    """What `in_parts` calls with x, b, y and places."""
    code = Code([Pointer] * 4 + [Index, Index, Shared])
    x, b, y, places, size, parts, taken = code.arguments
    (above, _), (left, _) = margins(height), margins(width)
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
            to = code.sum(code.times(row, line), left * channels)
            of_image = code.sum(code.times(first, 2), row, -above)
            with code.where(of_image, height) as (inside, outside):
                with inside:
                    at = code.sum(code.times(image, height), of_image)
                    at = code.times(at, width * channels)
                    with code.loop(channels, step=code.lanes) as channel:
                        bias = code.load(b, channel)
                        with code.loop(width) as column:
                            i = code.sum(code.times(column, channels), channel)
                            found = code.load(x, code.sum(at, i), kind) + bias
                            found = code.as_bfloat16(found) if kind == "bfloat16" else found
                            code.store(found, pixels, code.sum(to, i))
                with outside, code.loop(width * channels, step=code.lanes) as i:
                    code.store(nothing, pixels, code.sum(to, i))
        left_over = code.sum(code.times(first, -1), rows)
        with (
            code.loop(code.at_most(left_over, _ROWS)) as row,
            code.loop(columns) as column,
            code.loop(channels, step=code.lanes) as channel,
        ):
            window = code.sum(code.times(row, 2 * line), code.times(column, 2 * channels), channel)
            of = [
                code.load(pixels, code.sum(window, i * line + j * channels))
                for i in range(3)
                for j in range(3)
            ]
            # What the next rows of windows are made of.
            for ahead in (1, 2):
                pixel = code.sum(code.times(image, height), code.times(first, 2), 2 * _ROWS - above)
                pixel = code.sum(pixel, code.times(row, 2), ahead)
                pixel = code.sum(code.times(pixel, width), code.times(column, 2))
                for beside in (0, 1):
                    at = code.times(code.sum(pixel, beside), channels)
                    code.prefetch(x, code.sum(at, channel), kind)
            # From the middle, which is inside, so that what is no number stays that.
            found, place = of[4], code.bytes(4)
            for earlier in (3, 2, 1, 0):
                found, place = code.larger(
                    found, of[earlier], place, code.bytes(earlier), or_equal=True
                )
            for later in (5, 6, 7, 8):
                found, place = code.larger(found, of[later], place, code.bytes(later))
            to = code.sum(code.times(image, rows), first, row)
            to = code.sum(code.times(code.sum(code.times(to, columns), column), channels), channel)
            code.store(found, y, to, kind)
            code.store_bytes(place, places, to)
    return code.compiled()


@compiled_once
def gather(height: int, width: int, channels: int, kind: str) -> Callable[..., None]:
    """What `in_parts` calls with places, ∂y and ∂x."""
    code = Code([Pointer] * 3 + [Index, Index, Shared])
    places, of_y, of_x, size, parts, taken = code.arguments
    (above, _), (left, _) = margins(height), margins(width)
    rows, columns = -(-height // 2), -(-width // 2)
    # Windows with nothing around them, and blocks of 2 x 2 pixels.
    line, block_line = (columns + 1) * channels, 2 * columns * channels
    numbers = (_ROWS + 1) * line
    given, ats = code.array(numbers), code.array(numbers, Byte)
    blocks = code.array(2 * _ROWS * block_line)
    with code.loop(numbers, step=code.lanes) as i:
        code.store(code.zeros(), given, i)
        code.store_bytes(code.bytes(NOWHERE), ats, i)
    with (
        code.parts(size, parts, taken) as (_, begin, end),
        code.loop(end, begin) as image,
        code.loop(rows, step=_ROWS) as first,
    ):
        with code.loop(_ROWS + 1) as row:
            to = code.sum(code.times(row, line), (1 - left) * channels)
            window_row = code.sum(first, row, above - 1)
            with code.where(window_row, rows) as (inside, outside):
                with inside:
                    at = code.sum(code.times(image, rows), window_row)
                    at = code.times(at, columns * channels)
                    with code.loop(columns * channels, step=code.lanes) as i:
                        code.store(code.load(of_y, code.sum(at, i), kind), given, code.sum(to, i))
                        code.store_bytes(
                            code.load_bytes(places, code.sum(at, i)), ats, code.sum(to, i)
                        )
                with outside, code.loop(columns * channels, step=code.lanes) as i:
                    code.store(code.zeros(), given, code.sum(to, i))
        with (
            code.loop(_ROWS) as row,
            code.loop(columns) as column,
            code.loop(channels, step=code.lanes) as channel,
        ):
            window = code.sum(code.times(row, line), code.times(column, channels), channel)
            next_row = code.sum(code.times(image, rows), first, row, above + _ROWS)
            ahead = code.times(code.sum(code.times(next_row, columns), column), channels)
            code.prefetch(of_y, code.sum(ahead, channel), kind)
            code.prefetch(places, code.sum(ahead, channel), "uint8")
            sums = [[code.zeros(), code.zeros()], [code.zeros(), code.zeros()]]
            for down, in_rows in enumerate(offsets(height)):
                for right, in_columns in enumerate(offsets(width)):
                    i = code.sum(window, down * line + right * channels)
                    part, at = code.load(given, i), code.load_bytes(ats, i)
                    for r, in_row in enumerate(in_rows):
                        for c, in_column in enumerate(in_columns):
                            if in_row is not None and in_column is not None:
                                sums[r][c] += code.where_equal(at, 3 * in_row + in_column, part)
            to = code.sum(
                code.times(row, 2 * block_line), code.times(column, 2 * channels), channel
            )
            for r in range(2):
                for c in range(2):
                    code.store(sums[r][c], blocks, code.sum(to, r * block_line + c * channels))
        start = code.times(first, 2)
        left_over = code.sum(code.times(start, -1), height)
        with code.loop(code.at_most(left_over, 2 * _ROWS)) as row:
            to = code.times(code.sum(code.times(image, height), start, row), width * channels)
            at = code.times(row, block_line)
            with code.loop(width * channels, step=code.lanes) as i:
                code.store(code.load(blocks, code.sum(at, i)), of_x, code.sum(to, i), kind)
    return code.compiled()


def offsets(side: int) -> tuple[Offsets, Offsets]:
    """Where two windows, one after the other, have pixels 2a and 2a + 1."""
    before, _ = margins(side)
    return ((1, 2), (None, 0)) if before else ((2, None), (0, 1))


def margins(side: int) -> list[int]:
    """How many pixels `max_pool` thinks before and after so many: 2 ⌈n/2⌉ + 1 with them."""
    missing = 2 * -(-side // 2) + 1 - side
    return [missing // 2, missing - missing // 2]
