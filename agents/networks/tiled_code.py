"""The gradient of a convolution's weights in bfloat16 as products of tiles.

    ∂w_{i,j} = Σ_p x_p ∂y_{p-s(i,j)}ᵀ,   s(i, j) = (i - m) L + j - m

p counts the pixels of some images as one line: rows of L pixels follow one another, and where a row
of ∂y ends there are zeros, which are also what is before the next row. So a kernel's pixel is a
shift of the line.

A product of tiles sums over 32 pixels. They have to be next to each other for each channel of x,
and in pairs for each feature of ∂y. So x is turned once for all shifts, and ∂y is paired twice, for
even shifts and for odd ones: tiles whose rows do not begin with a line of the cache take several
times as long to load.
"""

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from llvmlite import ir

from agents.networks.tiles import COLUMNS, COUNT, ROWS, Tiles
from agents.networks.vector_code import Code, Half, Index, Place, Pointer, Shared

_PIXELS = 512  # at least, of images that are multiplied together: sums are loaded for each product
_MOST = 2**17  # numbers of a line, which stay in a core's second cache
_AT_ONCE = 8  # channels that are turned together


class Layer(NamedTuple):
    """What the loop is compiled for: a kernel that moves by one block of pixels."""

    rows: int  # of blocks in an image
    columns: int
    channels: int  # of a pixel
    features: int
    kernel: int  # blocks of its side
    margin: int  # blocks of zeros around an image
    block: int  # pixels of its side

    @property
    def depth(self) -> int:
        """Numbers of a block, which are row by row of its pixels."""
        return self.block**2 * self.channels

    @property
    def size(self) -> int:
        """How many weights there are."""
        return self.kernel**2 * self.depth * self.features


class _Line(NamedTuple):
    """Images as a line of pixels; of those of x, each is a block."""

    images: int
    rows: int  # of an image, with zeros below it
    columns: int  # of a row, with zeros after it: L
    of_rows: int  # those of ∂y without the zeros
    of_columns: int
    pixels: int  # a multiple of a tile's
    around: int  # zeros before and after the line of ∂y: as many as the largest shift, or one more

    def place(self, number: Place, row: Place, code: Code) -> Place:
        """The pixel at which a row of an image begins."""
        return code.times(code.sum(code.times(number, self.rows), row), self.columns)


def fits(layer: Layer) -> bool:
    """Whether channels and features fill tiles, and images the cache."""
    numbers = _line(layer).pixels * (layer.depth + layer.features)
    return numbers <= _MOST and not layer.depth % ROWS and not layer.features % ROWS


@functools.cache
def weights(layer: Layer) -> Callable[..., None]:
    """What `in_parts` calls with x, ∂y and the sums of each part, a row each.

    x is `[B, block rows, block columns, channels]` in bfloat16, ∂y `[B, ., ., features]`, and the
    weights are `[kernel, kernel, depth, features]`.
    """
    code = Code([Pointer] * 3 + [Index, Index, Shared])
    x, of_y, all_sums, size, parts, taken = code.arguments
    tiles, line = Tiles(code), _line(layer)
    wide = line.pixels + 2 * line.around
    of_x, turned = (_zeros(code, line.pixels * layer.depth) for _ in range(2))
    given, *paired = (_zeros(code, (wide + 1) * layer.features) for _ in range(3))
    with tiles.configured(), code.parts(size, parts, taken) as (part, begin, end):
        sums = code.beyond(all_sums, code.times(part, layer.size))
        with code.loop(layer.size, step=code.lanes) as i:
            code.store(code.zeros(), sums, i)
        with code.loop(end, begin, line.images) as first:
            with code.loop(line.images) as number:
                image = code.sum(first, number)
                with code.below(image, end) as (there, beyond):
                    with there:
                        _copy_image(code, layer, x, image, of_x, number)
                        _copy_gradient(code, layer, of_y, image, given, number)
                    with beyond:  # what x has there from before is multiplied by zeros
                        _clear_gradient(code, layer, given, number)
            _turn(code, of_x, turned, line.pixels, layer.depth)
            for odd, pairs in enumerate(paired):
                _pair(code, given, pairs, wide, layer.features, odd)
            _multiply(code, tiles, layer, turned, paired, sums)
    return code.compiled()


def _line(layer: Layer) -> _Line:
    beyond = 2 * layer.margin - layer.kernel + 1
    of_rows, of_columns = layer.rows + beyond, layer.columns + beyond
    zeros = layer.kernel - 1 - layer.margin
    rows, columns = max(layer.rows, of_rows + zeros), max(layer.columns, of_columns + zeros)
    images = -(-_PIXELS // (rows * columns))
    pixels = -(-images * rows * columns // COLUMNS) * COLUMNS
    largest = max(layer.margin, zeros) * (columns + 1)
    return _Line(images, rows, columns, of_rows, of_columns, pixels, largest + largest % 2)


def _zeros(code: Code, numbers: int) -> ir.Value:
    """An array of so many numbers of bfloat16."""
    found = code.array(numbers, Half)
    _clear(code, found, 0, numbers)
    return found


def _clear(code: Code, array: ir.Value, to: Place, numbers: int) -> None:
    with code.loop(numbers, step=ROWS) as i:
        code.store_halves(code.halves([0] * ROWS), array, code.sum(to, i))


def _copy(
    code: Code, source: ir.Value, of: Place, target: ir.Value, to: Place, numbers: int
) -> None:
    with code.loop(numbers, step=ROWS) as i:
        found = code.load_halves(source, code.sum(of, i), ROWS)
        code.store_halves(found, target, code.sum(to, i))


def _copy_image(
    code: Code, layer: Layer, x: ir.Value, image: Place, to: ir.Value, number: Place
) -> None:
    """Cuts an image into blocks, which are number `number` of the line."""
    line, of_block = _line(layer), layer.block * layer.channels  # numbers of a row of a block
    pieces = layer.columns if layer.block > 1 else 1  # of a row
    of_piece = layer.columns * of_block // pieces
    with code.loop(layer.rows) as row, code.loop(layer.block) as down:
        of = code.sum(code.times(image, layer.rows), row)
        of = code.sum(code.times(of, layer.block), down)
        begin = code.times(line.place(number, row, code), layer.depth)
        begin = code.sum(begin, code.times(down, of_block))
        with code.loop(pieces) as piece:
            at = code.times(code.sum(code.times(of, pieces), piece), of_piece)
            _copy(code, x, at, to, code.sum(begin, code.times(piece, layer.depth)), of_piece)


def _copy_gradient(
    code: Code, layer: Layer, of_y: ir.Value, image: Place, to: ir.Value, number: Place
) -> None:
    for row, begin, numbers in _rows_of_gradient(code, layer, number):
        of = code.sum(code.times(image, _line(layer).of_rows), row)
        _copy(code, of_y, code.times(of, numbers), to, begin, numbers)


def _clear_gradient(code: Code, layer: Layer, to: ir.Value, number: Place) -> None:
    for _, begin, numbers in _rows_of_gradient(code, layer, number):
        _clear(code, to, begin, numbers)


def _rows_of_gradient(
    code: Code, layer: Layer, number: Place
) -> Iterator[tuple[Place, Place, int]]:
    """Each row of ∂y of an image: its number, where it stands in the line, and its size."""
    line = _line(layer)
    with code.loop(line.of_rows) as row:
        pixel = code.sum(line.place(number, row, code), line.around + 1)
        yield row, code.times(pixel, layer.features), line.of_columns * layer.features


def _turn(code: Code, x: ir.Value, turned: ir.Value, pixels: int, depth: int) -> None:
    """`[pixels, depth]` -> `[pixels / 32, depth, 32]`.

    A vector has eight channels of four pixels, which are eight apart. Three times two vectors are
    mixed number by number, and one channel has its 32 pixels together.
    """
    eights = range(0, COLUMNS, _AT_ONCE)
    low = [at for eight in eights for i in range(eight, eight + 4) for at in (i, i + COLUMNS)]
    high = [at + 4 for at in low]
    with code.loop(pixels, step=COLUMNS) as pixel, code.loop(depth, step=_AT_ONCE) as channel:

        def load(offset: int) -> ir.Value:
            at = code.times(code.sum(pixel, offset), depth)
            return code.load_halves(x, code.sum(at, channel), _AT_ONCE)

        mixed = [code.joined([load(i + eight) for eight in eights]) for i in range(_AT_ONCE)]
        for _ in range(3):
            pairs = zip(mixed[:4], mixed[4:], strict=True)
            mixed = [code.shuffled(x, y, order) for x, y in pairs for order in (low, high)]
        for i, of_channel in enumerate(mixed):
            to = code.times(code.sum(channel, i), COLUMNS)
            code.store_halves(of_channel, turned, code.sum(code.times(pixel, depth), to))


def _pair(
    code: Code, given: ir.Value, pairs: ir.Value, pixels: int, features: int, odd: int
) -> None:
    """`[1 + pixels, features]` -> `[features / 16, pixels / 2, 16, 2]`.

    The first pixel is left out, or the last of the odd ones, which begin a pixel before.
    """
    in_turns = [at for i in range(ROWS) for at in (i, i + ROWS)]
    with code.loop(features, step=ROWS) as feature, code.loop(pixels, step=2) as pixel:
        two = []
        for i in (1 - odd, 2 - odd):
            at = code.times(code.sum(pixel, i), features)
            two.append(code.load_halves(given, code.sum(at, feature), ROWS))
        to = code.sum(code.times(feature, pixels), code.times(pixel, ROWS))
        code.store_halves(code.shuffled(two[0], two[1], in_turns), pairs, to)


class _Columns(NamedTuple):
    """Columns of weights that fill a tile."""

    shift: int  # s(i, j)
    feature: int  # the first
    weight: int  # the first of channel 0


def _multiply(
    code: Code,
    tiles: Tiles,
    layer: Layer,
    turned: ir.Value,
    paired: Sequence[ir.Value],
    sums: ir.Value,
) -> None:
    """Adds what these images have of the gradient to the sums."""
    line, kernel = _line(layer), layer.kernel
    wide = line.pixels + 2 * line.around
    columns = [
        _Columns(
            (i - layer.margin) * line.columns + j - layer.margin,
            feature,
            (i * kernel + j) * layer.depth * layer.features + feature,
        )
        for i in range(kernel)
        for j in range(kernel)
        for feature in range(0, layer.features, ROWS)
    ]
    # Two tiles by two, each loaded for two products; or one by six, where there is one of channels.
    of_x = [0, 1] if layer.depth % (2 * ROWS) == 0 else [0]
    at_once = 2 if len(of_x) == 2 else COUNT - 2
    totals = range(2 * len(of_x), COUNT)
    with code.loop(layer.depth, step=len(of_x) * ROWS) as channel:
        channels = [code.sum(channel, i * ROWS) for i in of_x]
        for begin in range(0, len(columns), at_once):
            some = columns[begin : begin + at_once]
            made = [(i, n) for n in range(len(some)) for i in of_x]
            weights_of = [
                code.beyond(sums, code.sum(code.times(channels[i], layer.features), some[n].weight))
                for i, n in made
            ]
            stride = 4 * layer.features  # bytes
            for total, at in zip(totals, weights_of, strict=False):
                tiles.load(total, at, stride)
            with code.loop(line.pixels, step=COLUMNS) as pixel:
                for i in of_x:
                    at = code.sum(code.times(pixel, layer.depth), code.times(channels[i], COLUMNS))
                    tiles.load(i, code.beyond(turned, at, "bfloat16"))
                for n, found in enumerate(some):
                    odd = found.shift % 2
                    first = found.feature * wide + (line.around - found.shift + odd) * ROWS
                    at = code.sum(code.times(pixel, ROWS), first)
                    y = len(of_x) + n % len(of_x)
                    tiles.load(y, code.beyond(paired[odd], at, "bfloat16"))
                    for total, (i, of) in zip(totals, made, strict=False):
                        if of == n:
                            tiles.multiply(total, i, y)
            for total, at in zip(totals, weights_of, strict=False):
                tiles.store(total, at, stride)
