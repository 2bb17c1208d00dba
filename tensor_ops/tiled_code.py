"""The gradient of a convolution's weights in bfloat16 as products of tiles.

    ∂w_{i,j} = Σ_p x_p ∂y_{p-s(i,j)}ᵀ,   s(i, j) = (i - m) L + j - m

p counts the pixels of some images as one line: rows of L pixels follow one another, and a row of ∂y
ends with zeros, which also stand before the next row. So a kernel's pixel is a shift of the line.

A product of tiles sums over 32 pixels. They have to be next to each other for each channel of x,
and in pairs for each feature of ∂y. So x is turned once for all shifts, and ∂y is paired twice, for
even shifts and for odd ones: a tile takes several times as long to load where its rows do not begin
with a line of the cache.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from tensor_ops.llvm import ir
from tensor_ops.tiles import COLUMNS, COUNT, ROWS, Tiles
from tensor_ops.vector_code import Code, Half, Index, Place, Pointer, Shared, compiled_once

_PIXELS = 512  # at least, of images that are multiplied together: sums are loaded for each product
_MOST = 2**17  # numbers of a line, which stay in a core's second cache
_AT_ONCE = 8  # channels that are turned together


class Layer(NamedTuple):
    """The layer that the loop is compiled for: a kernel that moves by one block of pixels."""

    rows: int  # of blocks in an image
    columns: int
    channels: int  # of a pixel
    features: int
    kernel: int  # blocks of its side
    margin: int  # blocks of zeros around an image
    block: int  # pixels of its side

    @property
    def depth(self) -> int:
        """Numbers of a block, row by row of its pixels."""
        return self.block**2 * self.channels

    @property
    def size(self) -> int:
        """The number of weights."""
        return self.kernel**2 * self.depth * self.features


class _Line(NamedTuple):
    """Images as a line of pixels. Each pixel of x is a block."""

    images: int
    rows: int  # of an image, with its margin below it
    columns: int  # of a row, with its margin after it: L
    of_rows: int  # of ∂y, without the zeros
    of_columns: int
    pixels: int  # a multiple of a tile's
    around: int  # even; zeros before and after the line of ∂y, as many as the largest shift

    @property
    def paired(self) -> int:
        """Pixels of ∂y in pairs; the odd ones, which begin a pixel before, need one more."""
        return self.pixels + 2 * self.around + 2

    def place(self, number: Place, row: Place) -> Place:
        """The pixel at which a row of an image begins."""
        return (number * self.rows + row) * self.columns


def fits(layer: Layer) -> bool:
    """Returns whether channels and features fill tiles, and images the cache."""
    numbers = _line(layer).pixels * (layer.depth + layer.features)
    return numbers <= _MOST and not layer.depth % ROWS and not layer.features % ROWS


@compiled_once
def weights(layer: Layer) -> Callable[..., None]:
    """The loop for `in_parts`: it reads x and ∂y, and writes the sums of each part as a row.

    x is `[B, block rows, block columns, channels]` in bfloat16, ∂y `[B, ., ., features]`, and the
    weights are `[kernel, kernel, depth, features]`.
    """
    code = Code([Pointer] * 3 + [Index, Index, Shared])
    x, of_y, all_sums, size, parts, taken = code.arguments
    tiles, line = Tiles(code), _line(layer)
    as_is = layer.block == 1 and layer.margin == 0
    of_x = _zeros(code, (COLUMNS if as_is else line.pixels) * layer.depth)
    turned = _zeros(code, line.pixels * layer.depth)
    pairs = _zeros(code, 2 * line.paired * layer.features)
    with tiles.configured(), code.parts(size, parts, taken) as (part, begin, end):
        sums = code.beyond(all_sums, part * layer.size)
        with code.loop(layer.size, step=code.lanes) as i:
            code.store(code.zeros(), sums, i)
        with code.loop(end, begin, line.images) as first:
            with code.loop(line.images) as number:
                image = first + number
                with code.below(image, end) as (there, beyond):
                    with there:
                        if not as_is:  # else it is read where it is, below
                            _copy_image(code, layer, x, image, of_x, number)
                        _pair(code, layer, of_y, image, pairs, number)
                    with beyond:  # zeros, since of_x keeps an image of before there
                        _pair(code, layer, None, image, pairs, number)
            if as_is:
                count = code.at_most(end - first, line.images)
                _turn_images(code, layer, x, first, count, of_x, turned)
            else:
                _turn(code, of_x, 0, turned, 0, line.pixels, layer.depth)
            next_image = first + line.images
            coming = [
                _Coming(array, next_image * numbers, line.images * numbers)
                for array, numbers in (
                    (x, layer.rows * layer.columns * layer.depth),
                    (of_y, line.of_rows * line.of_columns * layer.features),
                )
            ]
            _multiply(code, tiles, layer, turned, pairs, coming, sums)
    return code.compiled()


def _line(layer: Layer) -> _Line:
    beyond = 2 * layer.margin - layer.kernel + 1
    of_rows, of_columns = layer.rows + beyond, layer.columns + beyond
    rows, columns = layer.rows + layer.margin, layer.columns + layer.margin
    images = -(-_PIXELS // (rows * columns))
    pixels = -(-images * rows * columns // COLUMNS) * COLUMNS
    largest = max(layer.margin, layer.kernel - 1 - layer.margin) * (columns + 1)
    return _Line(images, rows, columns, of_rows, of_columns, pixels, largest + largest % 2)


def _zeros(code: Code, numbers: int) -> ir.Value:
    """An array of so many numbers of bfloat16."""
    found = code.array(numbers, Half)
    with code.loop(numbers, step=ROWS) as i:
        code.store_halves(code.halves([0] * ROWS), found, i)
    return found


def _copy(
    code: Code, source: ir.Value, of: Place, target: ir.Value, to: Place, numbers: Place
) -> None:
    with code.loop(numbers, step=ROWS) as i:
        found = code.load_halves(source, of + i, ROWS)
        code.store_halves(found, target, to + i)


def _copy_image(
    code: Code, layer: Layer, x: ir.Value, image: Place, to: ir.Value, number: Place
) -> None:
    """Cuts an image, number `number` of the line, into blocks."""
    line, of_block = _line(layer), layer.block * layer.channels  # numbers of a row of a block
    pieces = layer.columns if layer.block > 1 else 1  # of a row
    of_piece = layer.columns * of_block // pieces
    with code.loop(layer.rows) as row, code.loop(layer.block) as down:
        of = image * layer.rows + row
        of = of * layer.block + down
        begin = line.place(number, row) * layer.depth
        begin = begin + down * of_block
        with code.loop(pieces) as piece:
            at = (of * pieces + piece) * of_piece
            _copy(code, x, at, to, begin + piece * layer.depth, of_piece)


def _turn_images(
    code: Code,
    layer: Layer,
    x: ir.Value,
    first: Place,
    count: Place,
    rest: ir.Value,
    turned: ir.Value,
) -> None:
    """As `_turn`, so many images in place; the last pixels fill no tile and use `rest`."""
    size, depth = layer.rows * layer.columns, layer.depth
    of, pixels = first * (size * depth), count * size
    left = pixels % COLUMNS
    whole = pixels - left
    _turn(code, x, of, turned, 0, whole, depth)
    with code.below(0, left) as (some, none):
        with some:
            at = of + whole * depth
            _copy(code, x, at, rest, 0, left * depth)
            _turn(code, rest, 0, turned, whole * depth, COLUMNS, depth)
        with none:
            pass


def _turn(
    code: Code, x: ir.Value, of: Place, turned: ir.Value, to: Place, pixels: Place, depth: int
) -> None:
    """`[pixels, depth]` -> `[pixels / 32, depth, 32]`, from there on.

    A vector has eight channels of four pixels, which are eight apart. Three times two vectors are
    mixed number by number, and one channel has its 32 pixels together.
    """
    eights = range(0, COLUMNS, _AT_ONCE)
    low = [at for eight in eights for i in range(eight, eight + 4) for at in (i, i + COLUMNS)]
    high = [at + 4 for at in low]
    with code.loop(pixels, step=COLUMNS) as pixel, code.loop(depth, step=_AT_ONCE) as channel:

        def load(offset: int) -> ir.Value:
            at = (pixel + offset) * depth
            return code.load_halves(x, of + at + channel, _AT_ONCE)

        mixed = [code.joined([load(i + eight) for eight in eights]) for i in range(_AT_ONCE)]
        for _ in range(3):
            pairs = zip(mixed[:4], mixed[4:], strict=True)
            mixed = [code.shuffled(x, y, order) for x, y in pairs for order in (low, high)]
        for i, of_channel in enumerate(mixed):
            at = pixel * depth + (channel + i) * COLUMNS
            code.store_halves(of_channel, turned, to + at)


def _pair(
    code: Code, layer: Layer, of_y: ir.Value | None, image: Place, pairs: ir.Value, number: Place
) -> None:
    """An image's ∂y as `[2, features / 16, pixels / 2, 16, 2]`; None: zeros.

    Pair t of the first half has pixels 2t and 2t + 1 of the line; pair t of the second half has
    2t - 1 and 2t. So a row may begin at any pixel, and is written to both halves.
    """
    line, features = _line(layer), layer.features
    in_turns = [at for i in range(ROWS) for at in (i, i + ROWS)]
    with code.loop(line.of_rows) as row, code.loop(features, step=ROWS) as feature:
        of = image * line.of_rows + row
        of = of * (line.of_columns * features) + feature
        begin = line.place(number, row) + line.around

        def load(column: Place) -> ir.Value:
            outside = isinstance(column, int) and not 0 <= column < line.of_columns
            if of_y is None or outside:
                return code.halves([0] * ROWS)
            return code.load_halves(of_y, of + column * features, ROWS)

        def write(half: Place, column: Place) -> None:
            two = code.shuffled(load(column), load(column + 1), in_turns)
            pair = (begin + column + 1) // 2
            code.store_halves(two, pairs, half + pair * (2 * ROWS))

        for before in (0, 1):
            odd = (begin + before) % 2
            half = odd * features + feature
            half = half * line.paired
            whole = before + (line.of_columns - before) // 2 * 2
            if before:
                write(half, -1)
            with code.loop(whole, before, 2) as column:
                write(half, column)
            if whole < line.of_columns:
                write(half, whole)


class _Columns(NamedTuple):
    """Columns of weights that fill a tile."""

    shift: int  # s(i, j)
    feature: int  # the first
    weight: int  # the first of channel 0


class _Coming(NamedTuple):
    """The place of the next images."""

    array: ir.Value
    begin: Place
    numbers: int


def _multiply(
    code: Code,
    tiles: Tiles,
    layer: Layer,
    turned: ir.Value,
    pairs: ir.Value,
    coming: Sequence[_Coming],
    sums: ir.Value,
) -> None:
    """Adds these images' part of the gradient to the sums.

    The next images are prefetched meanwhile: to wait for memory would take as long as this.
    """
    line, kernel = _line(layer), layer.kernel
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
    groups = [columns[i : i + at_once] for i in range(0, len(columns), at_once)]
    rows = len(of_x) * ROWS
    steps = len(groups) * (layer.depth // rows) * (line.pixels // COLUMNS)
    totals, stride = range(2 * len(of_x), COUNT), 4 * layer.features  # bytes
    with code.loop(layer.depth, step=rows) as channel:
        channels = [channel + i * ROWS for i in of_x]
        for number, group in enumerate(groups):
            made = [(i, n) for n in range(len(group)) for i in of_x]
            weights_of = []
            for i, n in made:
                first = channels[i] * layer.features
                weights_of.append(code.beyond(sums, first + group[n].weight))
            for total, at in zip(totals, weights_of, strict=False):
                tiles.load(total, at, stride)
            pixels_before = channel // rows * len(groups)
            pixels_before = (pixels_before + number) * line.pixels
            with code.loop(line.pixels, step=COLUMNS) as pixel:
                for array, begin, numbers in coming:
                    each = -(-numbers // (steps * COLUMNS))
                    at = begin + (pixels_before + pixel) * each
                    for ahead in range(0, each * COLUMNS, COLUMNS):  # a line of the cache
                        code.prefetch(array, at + ahead, "bfloat16")
                for i in of_x:
                    at = pixel * layer.depth
                    at = at + channels[i] * COLUMNS
                    tiles.load(i, code.beyond(turned, at, "bfloat16"))
                for n, found in enumerate(group):
                    odd = found.shift % 2
                    half = (odd * layer.features + found.feature) * line.paired
                    first = pixel + (line.around - found.shift + odd)
                    at = first * ROWS + half
                    y = len(of_x) + n % len(of_x)
                    tiles.load(y, code.beyond(pairs, at, "bfloat16"))
                    for total, (i, of) in zip(totals, made, strict=False):
                        if of == n:
                            tiles.multiply(total, i, y)
            for total, at in zip(totals, weights_of, strict=False):
                tiles.store(total, at, stride)
