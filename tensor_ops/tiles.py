"""Tiles: matrices in registers, multiplied by one instruction on a processor with AMX.

A tile has 16 rows of 16 floats, or of 32 numbers of bfloat16. Where the processor has none, tiles
are arrays and their product is a loop over vectors: code with tiles runs everywhere, and is tested
there, but would not pay.
"""

import contextlib
from collections.abc import Iterator

from tensor_ops.llvm import ir
from tensor_ops.vector_code import Byte, Code, Index, Place, multiplies_tiles

COUNT = 8  # tiles
ROWS, COLUMNS = 16, 32  # of a tile of bfloat16
_FLOATS = 16  # of a row
_ROW = 64  # bytes


class Tiles:
    """The tiles of a function while it is written; each has a number below `COUNT`."""

    def __init__(self, code: Code) -> None:
        self._code = code
        self._real = multiplies_tiles()
        self._arrays = [] if self._real else [code.array(ROWS * _FLOATS) for _ in range(COUNT)]

    @contextlib.contextmanager
    def configured(self) -> Iterator[None]:
        """Code that uses tiles is written within this context."""
        if not self._real:
            yield
            return
        first_palette = [1, *[0] * 15]
        sizes = [*[_ROW, 0] * COUNT, *[0] * 16, *[ROWS] * COUNT, *[0] * 8]
        told = self._code.array(64, Byte)
        for place, number in enumerate([*first_palette, *sizes]):
            at = self._code.builder.gep(told, [ir.Constant(Index, place)], source_etype=Byte)
            self._code.builder.store(ir.Constant(Byte, number), at)
        self._code.call("llvm.x86.ldtilecfg", told)
        yield
        self._code.call("llvm.x86.tilerelease")

    def load(self, tile: int, array: ir.Value, stride: int = _ROW) -> None:
        """Rows that begin at `array`, so many bytes apart."""
        if self._real:
            self._call("tileloadd64", tile, array, stride)
            return
        for row, to, at in self._rows(tile, stride):
            self._code.store(self._code.load(array, at), to, row)

    def store(self, tile: int, array: ir.Value, stride: int = _ROW) -> None:
        if self._real:
            self._call("tilestored64", tile, array, stride)
            return
        for row, of, at in self._rows(tile, stride):
            self._code.store(self._code.load(of, row), array, at)

    def multiply(self, total: int, x: int, y: int) -> None:
        """total + x y, for a total of floats.

        Row p of y has two rows of the matrix that x is multiplied by, 2p and 2p + 1: a number of
        either in turns.
        """
        if self._real:
            numbers = [ir.Constant(Byte, tile) for tile in (total, x, y)]
            self._code.call("llvm.x86.tdpbf16ps", *numbers)
            return
        code = self._code
        totals, x, y = (self._arrays[tile] for tile in (total, x, y))
        with code.loop(ROWS) as row, code.loop(_FLOATS) as pair:
            factors = code.both_halves(code.spread(x, row * _FLOATS + pair))
            with code.loop(_FLOATS, step=code.lanes) as column:
                found = code.both_halves(code.load(y, pair * _FLOATS + column))
                at = row * _FLOATS + column
                products = [factor * of for factor, of in zip(factors, found, strict=True)]
                code.store(code.load(totals, at) + (products[0] + products[1]), totals, at)

    def _call(self, name: str, tile: int, array: ir.Value, stride: int) -> None:
        number, between = ir.Constant(Byte, tile), ir.Constant(Index, stride)
        self._code.call(f"llvm.x86.{name}", number, array, between)

    def _rows(self, tile: int, stride: int) -> Iterator[tuple[Place, ir.Value, Place]]:
        """For each vector of a tile that is an array: its place there, that array, and its place in
        memory."""
        code = self._code
        with code.loop(ROWS) as row, code.loop(_FLOATS, step=code.lanes) as column:
            in_tile = row * _FLOATS + column
            yield in_tile, self._arrays[tile], row * (stride // 4) + column
