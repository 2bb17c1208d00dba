"""Winograd's convolutions as loops over vectors of channels.

    y = Aᵀ [(G w Gᵀ) · (Bᵀ x B)] A            for each tile; the dot is a product number by number
    ∂w = Gᵀ [Σ (Bᵀ x B) · (A ∂y Aᵀ)] G        over tiles

With channels, each number of a tile is a product of matrices: tiles x channels by channels x
features. ∂x is a convolution of ∂y with the kernel turned.

The transforms would be bound by memory if all tiles were written out. So a loop takes a few rows of
tiles at a time, which stay in a core's own cache from images read to images written, while the next
rows are asked for.
"""

import contextlib
import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np

from tensor_ops.llvm import ir
from tensor_ops.vector_code import (
    CACHE_LINE,
    SIZES,
    Code,
    Index,
    Place,
    Pointer,
    Shared,
    Vector,
    compiled_once,
)

# The points of evaluation, besides infinity, for so many sums of a side: numbers of few digits,
# with half the errors of 0, 1, -1, 2 and -2 (measured; Barabasz et al. 2020 say why).
_POINTS: Mapping[int, Sequence[float]] = {
    3: (0, 1),
    4: (0, 1, -1),
    5: (0, 3 / 4, -3 / 4, 3 / 2),
    6: (0, 5 / 8, -5 / 8, 3 / 2, -3 / 2),
}
_TILES = (4, 3, 2)  # outputs of a tile's side, to choose from
# Tiles at a time: as many sums as fit the registers; more for the weights' gradient, since its sums
# are loaded and stored each time. Measured.
_SUMS, _SUMS_OF_WEIGHTS = 12, 24

T = TypeVar("T", bound=Any)


class Matrices(NamedTuple):
    """Of F(m, r), in one dimension."""

    of_inputs: np.ndarray  # Bᵀ [m + r - 1, m + r - 1]
    of_weights: np.ndarray  # G [m + r - 1, r]
    of_products: np.ndarray  # Aᵀ [m, m + r - 1]


@functools.cache
def matrices(tile: int, kernel: int) -> Matrices:
    """After Toom and Cook: a product of polynomials is one of their values at some points."""
    side = tile + kernel - 1
    points = _POINTS[side]
    at = np.array(points)
    of_inputs = np.zeros([side, side])
    of_weights = np.zeros([side, kernel])
    for row, point in enumerate(points):
        others = [other for other in points if other != point]
        of_inputs[row, :-1] = np.poly(others)[::-1]
        of_weights[row] = point ** np.arange(kernel) / np.prod(point - np.array(others))
    of_inputs[-1] = np.poly(at)[::-1]
    of_weights[-1, -1] = 1
    of_products = np.zeros([tile, side])
    of_products[:, :-1] = at ** np.arange(tile)[:, np.newaxis]
    of_products[-1, -1] = 1
    return Matrices(of_inputs, of_weights, of_products)


def transform(matrix: np.ndarray, x: Sequence[T]) -> list[T]:
    """M x, of numbers, arrays or vectors.

    Rows and columns for a point and for its negative differ in every other sign: their common part
    is computed once.
    """
    signs = (-1.0) ** np.arange(max(matrix.shape))
    terms: list[list[tuple[float, T]]] = [[] for _ in matrix]
    columns = iter(range(len(x)))
    for j in columns:
        if j + 1 < len(x) and _alike(matrix[:, j], matrix[:, j + 1], signs):
            next(columns)
            values = (x[j] + x[j + 1], x[j] - x[j + 1])
        else:
            values = (x[j], x[j])
        for i, row in enumerate(terms):
            if matrix[i, j]:
                row.append((matrix[i, j], values[i % 2]))
    made: list[T] = []
    rows = iter(range(len(matrix)))
    for i in rows:
        if i + 1 < len(matrix) and _alike(matrix[i], matrix[i + 1], signs):
            next(rows)
            even, odd = (
                _sum([(matrix[i, j], x[j]) for j in range(k, len(x), 2) if matrix[i, j]])
                for k in range(2)
            )
            made += [even + odd, even - odd]
        else:
            made.append(_sum(terms[i]))
    return made


def _alike(one: np.ndarray, other: np.ndarray, signs: np.ndarray) -> bool:
    same = signs[: len(one)]
    both = (one[same > 0] != 0).any() and (one[same < 0] != 0).any()
    return bool(both and (other == one * same).all())


def _sum(terms: Sequence[tuple[float, T]]) -> T:
    first, *others = sorted(terms, key=lambda term: term[0] != 1)
    total = first[1] if first[0] == 1 else first[1] * first[0]
    for factor, value in others:
        if factor == -1:
            total = total - value
        else:
            total = total + (value if factor == 1 else value * factor)
    return total


def transform_both(matrix: np.ndarray, x: Callable[[int, int], T]) -> list[list[T]]:
    """M x Mᵀ, of a square."""
    side = range(matrix.shape[1])
    columns = [transform(matrix, [x(i, j) for i in side]) for j in side]
    return [transform(matrix, row) for row in zip(*columns, strict=True)]


class Images(NamedTuple):
    """The layout of images in memory: `[B, rows * block, columns * block, channels / block²]`.

    A block's channels are its pixels', row by row.
    """

    rows: int  # of blocks
    columns: int
    channels: int  # of a block
    block: int  # pixels of its side
    kind: str  # as `Code.load` says

    @property
    def line(self) -> int:
        """Numbers of a row of a block."""
        return self.channels // self.block

    def place(self, image: Place, row: Place, line: Place) -> Place:
        """The place of a row of pixels, the `line`-th of a row of blocks."""
        return ((image * self.rows + row) * self.block + line) * (self.columns * self.line)


class Layer(NamedTuple):
    """A convolution with stride 1 over blocks."""

    inputs: Images
    outputs: Images
    kernel: int  # blocks of its side
    margin: int  # blocks of zeros around an image

    @property
    def tile(self) -> int:
        """Outputs of a tile's side: those that need the fewest operations."""
        return min(_TILES, key=self._operations)

    def _operations(self, tile: int) -> float:
        rows, columns = (-(-side // tile) for side in (self.outputs.rows, self.outputs.columns))
        channels, features = self.inputs.channels, self.outputs.channels
        transforms = 6 * (channels + features)
        return rows * columns * (tile + self.kernel - 1) ** 2 * (channels * features + transforms)

    @property
    def side(self) -> int:
        """Inputs of a tile's side, and products."""
        return self.tile + self.kernel - 1

    @property
    def tile_rows(self) -> int:
        return -(-self.outputs.rows // self.tile)

    @property
    def tile_columns(self) -> int:
        return -(-self.outputs.columns // self.tile)

    @property
    def num_products(self) -> int:
        """The number of transformed weights."""
        return self.side**2 * self.inputs.channels * self.outputs.channels

    @property
    def matrices(self) -> Matrices:
        return matrices(self.tile, self.kernel)

    def rows_at_a_time(self, most: int) -> int:
        """Rows of tiles, so that about so many tiles are taken and few beyond the image."""
        several = range(1, max(1, min(most // self.tile_columns, self.tile_rows)) + 1)
        return max(several, key=lambda rows: (-(-self.tile_rows // rows) * -rows, rows))

    @property
    def share_used(self) -> float:
        """Of the outputs of tiles, those that are inside an image."""
        made = self.tile_rows * self.tile_columns * self.tile**2
        return self.outputs.rows * self.outputs.columns / made

    @property
    def bytes_within(self) -> int:
        """Bytes that the loops keep for some rows of tiles."""
        rows = self.rows_at_a_time(_SUMS_OF_WEIGHTS)
        tiles = rows * self.tile_columns
        pixels = (rows * self.tile + self.kernel) * (self.tile_columns * self.tile + self.kernel)
        channels = self.inputs.channels + self.outputs.channels
        return 4 * channels * (self.side**2 * tiles + pixels)


class Extras(NamedTuple):
    """Further steps of a convolution."""

    after_relu: bool = False
    b: bool = False
    positive: bool = False
    beside: bool = False


ARRAYS = Extras._fields[1:]


class _Strip:
    """Rows of tiles that are computed together, and the arrays for them.

    `image` has inputs with zeros around them, `outputs` the tiles' outputs: row by row.
    `of_inputs` and `of_outputs` have a matrix for each number of a tile, tiles x channels.
    """

    def __init__(self, code: Code, layer: Layer, tiles: int) -> None:
        self.code = code
        self.layer = layer
        self.rows = layer.rows_at_a_time(tiles)
        self.tiles = self.rows * layer.tile_columns
        self.output_rows = layer.tile * self.rows
        self.output_columns = layer.tile * layer.tile_columns
        self.image_rows = self.output_rows + layer.kernel - 1
        self.image_columns = self.output_columns + layer.kernel - 1
        channels, features = layer.inputs.channels, layer.outputs.channels
        self.image = self._zeros(self.image_rows * self.image_columns * channels)
        self.outputs = self._zeros(self.output_rows * self.output_columns * features)
        self.of_inputs = code.array(layer.side**2 * self.tiles * channels)
        self.of_outputs = code.array(layer.side**2 * self.tiles * features)

    def _zeros(self, size: int) -> ir.Value:
        found = self.code.array(size)
        with self.code.loop(size, step=self.code.lanes) as i:
            self.code.store(self.code.zeros(), found, i)
        return found

    def read_image(self, x: ir.Value, image: Place, first: Place, relu: bool) -> None:
        """Reads rows of x or max(x, 0), beginning at the first row of tiles."""
        code, inputs, margin = self.code, self.layer.inputs, self.layer.margin
        start = first * self.layer.tile - margin
        with code.loop(self.image_rows) as row:
            of_image = start + row
            to = (row * self.image_columns + margin) * inputs.channels
            with code.where(of_image, inputs.rows) as (inside, outside):
                with (
                    inside,
                    self._channels(inputs, image, of_image) as (place, channel),
                    code.loop(inputs.columns) as column,
                ):
                    at = place + column * inputs.line
                    i = column * inputs.channels + channel
                    found = code.load(x, at, inputs.kind)
                    found = code.positive(found) if relu else found
                    code.store(found, self.image, to + i)
                size = inputs.columns * inputs.channels
                with outside, code.loop(size, step=code.lanes) as i:
                    code.store(code.zeros(), self.image, to + i)

    def read_outputs(
        self, y: ir.Value, image: Place, first: Place, sums: ir.Value, of_b: int
    ) -> None:
        """Reads rows of a gradient, and adds each channel's sum to `sums` from `of_b` on."""
        code, outputs = self.code, self.layer.outputs
        with (
            self._rows_inside(first) as (row, of_image),
            self._channels(outputs, image, of_image) as (place, channel),
        ):
            (total,) = code.variables([code.load(sums, channel + of_b)])
            with code.loop(outputs.columns) as column:
                found = code.load(y, place + column * outputs.line, outputs.kind)
                total.set(total.get() + found)
                i = column * outputs.channels + channel
                code.store(found, self.outputs, row + i)
            code.store(total.get(), sums, channel + of_b)
        size = self.output_columns * outputs.channels
        with (
            code.loop(self.output_rows, self._num_inside(first)) as row,
            code.loop(size, step=code.lanes) as i,
        ):
            code.store(code.zeros(), self.outputs, row * size + i)

    def write_outputs(
        self, y: ir.Value, image: Place, first: Place, arrays: Mapping[str, Any]
    ) -> None:
        """Writes rows of y, with the additions."""
        code, outputs = self.code, self.layer.outputs
        with (
            self._rows_inside(first) as (row, of_image),
            self._channels(outputs, image, of_image) as (place, channel),
        ):
            b = code.load(arrays["b"], channel) if "b" in arrays else None
            with code.loop(outputs.columns) as column:
                at = place + column * outputs.line
                i = column * outputs.channels + channel
                made = code.load(self.outputs, row + i)
                made = made + b if b else made
                if "positive" in arrays:
                    made = code.where_positive(
                        code.load(arrays["positive"], at, outputs.kind), made
                    )
                if "beside" in arrays:
                    made = made + code.load(arrays["beside"], at, outputs.kind)
                code.store(made, y, at, outputs.kind)

    @contextlib.contextmanager
    def _channels(self, images: Images, image: Place, row: Place) -> Iterator[tuple[Place, Place]]:
        """A loop over vectors of a block's channels: the place of each, and its number."""
        code = self.code
        with (
            code.loop(images.block) as line,
            code.loop(images.line, step=code.lanes) as number,
        ):
            place = images.place(image, row, line) + number
            yield place, line * images.line + number

    @contextlib.contextmanager
    def _rows_inside(self, first: Place) -> Iterator[tuple[Place, Place]]:
        """A loop over the rows of `outputs` within an image: the place of each, and its number."""
        code = self.code
        with code.loop(self._num_inside(first)) as row:
            place = row * (self.output_columns * self.layer.outputs.channels)
            yield place, first * self.layer.tile + row

    def _num_inside(self, first: Place) -> Place:
        below = self.layer.outputs.rows - first * self.layer.tile
        return self.code.at_most(below, self.output_rows)

    def prefetch_image(self, x: ir.Value, image: Place, first: Place, part: Place) -> None:
        """Asks for a part of the rows that `read_image` will read next, of as many as products."""
        kernel, margin = self.layer.kernel, self.layer.margin
        row = first * self.layer.tile + (self.output_rows + kernel - 1 - margin)
        self._prefetch(x, self.layer.inputs, image, row, part)

    def prefetch_outputs(self, y: ir.Value, image: Place, first: Place, part: Place) -> None:
        """The same for rows of outputs."""
        self._prefetch(y, self.layer.outputs, image, first * self.layer.tile, part)

    def _prefetch(
        self, array: ir.Value, images: Images, image: Place, row: Place, part: Place
    ) -> None:
        code, step = self.code, CACHE_LINE // SIZES[images.kind]
        size = self.output_rows * images.columns * images.channels
        each = -(-size // (step * self.layer.side**2)) * step
        start = images.place(image, row, 0) + part * each
        for i in range(0, each, step):
            code.prefetch(array, start + i, images.kind)

    def transform_image(self) -> None:
        """Bᵀ x B of each tile."""
        layer, channels = self.layer, self.layer.inputs.channels
        with self._tiles(channels, self.image_columns) as (pixel, number):
            self._to_numbers(
                layer.matrices.of_inputs,
                self.image,
                pixel,
                self.image_columns * channels,
                channels,
                self.of_inputs,
                number,
            )

    def transform_outputs(self) -> None:
        """A ∂y Aᵀ of each tile."""
        layer, features = self.layer, self.layer.outputs.channels
        with self._tiles(features, self.output_columns) as (pixel, number):
            self._to_numbers(
                layer.matrices.of_products.T,
                self.outputs,
                pixel,
                self.output_columns * features,
                features,
                self.of_outputs,
                number,
            )

    def _to_numbers(
        self,
        matrix: np.ndarray,
        pixels: ir.Value,
        pixel: Place,
        line: int,
        channels: int,
        numbers: ir.Value,
        number: Place,
    ) -> None:
        code = self.code

        def read(i: int, j: int) -> Vector:
            return code.load(pixels, pixel + (i * line + j * channels))

        for i, row in enumerate(transform_both(matrix, read)):
            for j, value in enumerate(row):
                step = (self.layer.side * i + j) * self.tiles * channels
                code.store(value, numbers, number + step)

    def make_outputs(self) -> None:
        """Aᵀ m A of each tile."""
        code, side, features = self.code, self.layer.side, self.layer.outputs.channels
        with self._tiles(features, self.output_columns) as (pixel, number):

            def read(i: int, j: int) -> Vector:
                step = (side * i + j) * self.tiles * features
                return code.load(self.of_outputs, number + step)

            for i, row in enumerate(transform_both(self.layer.matrices.of_products, read)):
                for j, value in enumerate(row):
                    step = (i * self.output_columns + j) * features
                    code.store(value, self.outputs, pixel + step)

    @contextlib.contextmanager
    def _tiles(self, channels: int, columns: int) -> Iterator[tuple[Place, Place]]:
        """A loop over tiles and channels: a tile's first pixel, and the first of its numbers."""
        code, tile = self.code, self.layer.tile
        with (
            code.loop(self.rows) as row,
            code.loop(self.layer.tile_columns) as column,
            code.loop(channels, step=code.lanes) as channel,
        ):
            across = column * (tile * channels)
            pixel = row * (tile * columns * channels) + across + channel
            which = row * self.layer.tile_columns + column
            yield pixel, which * channels + channel

    def multiply(self, w: ir.Value, number: Place, feature: Place) -> None:
        """A vector of features of all tiles, for one of their numbers."""
        tile = 0
        for size in map(len, np.array_split(range(self.tiles), -(-self.tiles // _SUMS))):
            self._multiply(w, number, feature, tile, size)
            tile += size

    def _multiply(self, w: ir.Value, number: Place, feature: Place, tile: int, size: int) -> None:
        code = self.code
        channels, features = self.layer.inputs.channels, self.layer.outputs.channels
        inputs = number * (self.tiles * channels) + tile * channels
        outputs = number * (self.tiles * features) + tile * features + feature
        weights = number * (channels * features) + feature
        sums = code.variables([code.zeros()] * size)
        unrolled = 4
        with code.loop(channels, step=unrolled) as several:
            for step in range(unrolled):
                channel = several + step
                weight = code.load(w, weights + channel * features)
                for t, total in enumerate(sums):
                    factor = code.spread(self.of_inputs, inputs + channel + t * channels)
                    total.set(total.get() + factor * weight)
        for t, total in enumerate(sums):
            code.store(total.get(), self.of_outputs, outputs + t * features)

    def add_products(self, sums: ir.Value, number: Place, feature: Place, channel: Place) -> None:
        """A vector of channels by a vector of features, summed over tiles, for one number."""
        code = self.code
        channels, features = self.layer.inputs.channels, self.layer.outputs.channels
        inputs = number * (self.tiles * channels) + channel
        outputs = number * (self.tiles * features) + feature
        of_channel = number * channels + channel
        first = of_channel * features + feature
        places = [first + c * features for c in range(code.lanes)]
        totals = code.variables([code.load(sums, place) for place in places])
        with code.loop(self.tiles) as tile:
            of_output = code.load(self.of_outputs, outputs + tile * features)
            of_input = inputs + tile * channels
            for c, total in enumerate(totals):
                factor = code.spread(self.of_inputs, of_input + c)
                total.set(total.get() + factor * of_output)
        for place, total in zip(places, totals, strict=True):
            code.store(total.get(), sums, place)


@compiled_once
def forwards(layer: Layer, extras: Extras) -> Callable[..., None]:
    """beside + (conv(x or max(x, 0)) + b, where positive > 0, or else 0).

    Returns:
      The loop for `in_parts`, called with x, G w Gᵀ, b, positive, beside and y; a number of G w Gᵀ
      is `[channels, features]`.
    """
    code = Code([Pointer] * 6 + [Index, Index, Shared])
    x, w, *given, y, size, parts, taken = code.arguments
    arrays = {name: at for name, at in zip(ARRAYS, given, strict=True) if getattr(extras, name)}
    strip = _Strip(code, layer, _SUMS)
    with (
        code.parts(size, parts, taken) as (_, begin, end),
        code.loop(end, begin) as image,
        code.loop(layer.tile_rows, step=strip.rows) as first,
    ):
        strip.read_image(x, image, first, extras.after_relu)
        strip.transform_image()
        with code.loop(layer.side**2) as number:
            strip.prefetch_image(x, image, first, number)
            for name in arrays.keys() - {"b"}:
                strip.prefetch_outputs(arrays[name], image, first, number)
            with code.loop(layer.outputs.channels, step=code.lanes) as feature:
                strip.multiply(w, number, feature)
        strip.make_outputs()
        strip.write_outputs(y, image, first, arrays)
    return code.compiled()


@compiled_once
def weights(layer: Layer, after_relu: bool) -> Callable[..., None]:
    """Σ (Bᵀ x B) · (A ∂y Aᵀ) over tiles and images, and Σ ∂y.

    Returns:
      The loop for `in_parts`, called with x, ∂y and the sums of each part, a row each.
    """
    code = Code([Pointer] * 3 + [Index, Index, Shared])
    x, of_y, all_sums, size, parts, taken = code.arguments
    strip = _Strip(code, layer, _SUMS_OF_WEIGHTS)
    features = layer.outputs.channels
    with code.parts(size, parts, taken) as (part, begin, end):
        sums = code.beyond(all_sums, part * (layer.num_products + features))
        with code.loop(layer.num_products + features, step=code.lanes) as i:
            code.store(code.zeros(), sums, i)
        with code.loop(end, begin) as image, code.loop(layer.tile_rows, step=strip.rows) as first:
            _add_strip(strip, x, of_y, sums, image, first, after_relu)
    return code.compiled()


def _add_strip(
    strip: _Strip,
    x: ir.Value,
    of_y: ir.Value,
    sums: ir.Value,
    image: Place,
    first: Place,
    after_relu: bool,
) -> None:
    code, layer = strip.code, strip.layer
    strip.read_image(x, image, first, after_relu)
    strip.read_outputs(of_y, image, first, sums, layer.num_products)
    strip.transform_image()
    strip.transform_outputs()
    with code.loop(layer.side**2) as number:
        strip.prefetch_image(x, image, first, number)
        strip.prefetch_outputs(of_y, image, first + strip.rows, number)
        with (
            code.loop(layer.outputs.channels, step=code.lanes) as feature,
            code.loop(layer.inputs.channels, step=code.lanes) as channel,
        ):
            strip.add_products(sums, number, feature, channel)
