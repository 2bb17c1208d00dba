"""The LSTM's recurrence as loops over vectors of units, all steps in one.

The steps of an item follow one another, but items do not wait for each other: a core takes some of
a batch through all steps, and uses a product's result in its own cache.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from tensor_ops.llvm import ir
from tensor_ops.vector_code import Code, Index, Place, Pointer, Shared, Vector, compiled_once

# Items at a time: as many sums as fit the registers, of four gates each and then of one.
# AVX-512 has 32 registers, AVX2 has 16.
_ITEMS, _ITEMS_BACK = {16: 4, 8: 2}, 8


class Unroll(NamedTuple):
    """The shape that the loops are compiled for."""

    steps: int  # T
    units: int  # H
    kind: str  # of the gates' numbers, as `Code.load` says


@compiled_once
def forwards(unroll: Unroll) -> Callable[..., None]:
    """T steps, each as in `lstm.unroll`.

    Returns:
      The loop for `in_parts`. It reads hidden and cell `[B, H]`, gates `[T, B, 4H]`, `packed` W,
      valid and following reset `[T, B]`, 0 or 1. It writes outputs `[T, B, H]`, z `[T, B, 4H]`, and
      hidden and cell before each step and after the last, `[T + 1, B, H]`.
    """
    code = Code([Pointer] * 10 + [Index, Index, Shared])
    hidden, cell, gates, w, valid, reset, outputs, z, hiddens, cells, *batch = code.arguments
    units = unroll.units

    def advance(row: Place, following: Place, unit: Place, products: Sequence[Vector]) -> None:
        made = []
        for gate, product in enumerate(products):
            at = row * (4 * units) + unit + gate * units
            made.append(product + code.load(gates, at, unroll.kind))
            code.store(made[-1], z, at)
        here = row * units + unit
        before = code.load(cells, here)
        activations = _activations(code, made)
        write, forget, candidate, read = activations
        after = forget * before + write * candidate
        output = read * code.tanh(after)
        code.store(output, outputs, here)
        is_valid, is_reset = code.spread(valid, row), code.spread(reset, row)
        for value, old, states in (
            (output, code.load(hiddens, here), hiddens),
            (after, before, cells),
        ):
            kept = code.choose(is_valid, value, old)
            to = following * units + unit
            code.store(code.choose(is_reset, code.zeros(), kept), states, to)

    with code.parts(*batch) as (_, begin, end):
        first, last = begin * units, end * units
        with code.loop(last, first, code.lanes) as i:
            code.store(code.load(hidden, i), hiddens, i)
            code.store(code.load(cell, i), cells, i)
        with code.loop(unroll.steps) as t, code.loop(units, step=code.lanes) as unit:
            row = t * batch[0]
            for item, count in code.several(begin, end, _ITEMS[code.lanes]):
                rows = [row + item + i for i in range(count)]
                sums = _multiply(code, hiddens, rows, w, unit, units, 4)
                for one, products in zip(rows, sums, strict=True):
                    advance(one, one + batch[0], unit, products)
    return code.compiled()


@compiled_once
def backwards(unroll: Unroll) -> Callable[..., None]:
    """Passes the state's gradient back through T steps.

    Returns:
      The loop for `in_parts`. It reads the gradients of hidden and cell after the last step
      `[B, H]`, the gradient of outputs, z, cells, packed Wᵀ, valid and following reset. It writes
      the gradients of z, and of hidden and cell before the first step; where the gates have another
      precision, it also writes the gradient of z in that precision.
    """
    apart = unroll.kind != "float32"
    code = Code([Pointer] * (11 + apart) + [Index, Index, Shared])
    of_hidden, of_cell, of_outputs, z, cells, w, valid, reset, of_z, of_h, of_c, *others = (
        code.arguments
    )
    batch = others[-3:]
    units = unroll.units

    def retreat(row: Place, item: Place, unit: Place) -> None:
        here = row * units + unit
        state = item * units + unit
        numbers = row * (4 * units) + unit
        found = [code.load(z, numbers + gate * units) for gate in range(4)]
        before = code.load(cells, here)
        write, forget, candidate, read = _activations(code, found)
        seen = code.tanh(forget * before + write * candidate)
        is_valid, is_reset = code.spread(valid, row), code.spread(reset, row)
        none = code.zeros()
        of_state = [code.choose(is_reset, none, code.load(of, state)) for of in (of_h, of_c)]
        of_output, of_after = (code.choose(is_valid, of, none) for of in of_state)
        kept, of_before = (code.choose(is_valid, none, of) for of in of_state)
        of_output = of_output + code.load(of_outputs, here)
        one = code.numbers(1.0)
        of_after = of_after + of_output * read * (one - seen * seen)
        of_gates = (
            of_after * candidate * write * (one - write),
            of_after * before * forget * (one - forget),
            of_after * write * (one - candidate * candidate),
            of_output * seen * read * (one - read),
        )
        for gate, of_gate in enumerate(of_gates):
            code.store(of_gate, of_z, numbers + gate * units)
            if apart:
                code.store(of_gate, others[0], numbers + gate * units, unroll.kind)
        code.store(kept, of_h, state)
        code.store(of_before + of_after * forget, of_c, state)

    with code.parts(*batch) as (_, begin, end):
        first, last = begin * units, end * units
        with code.loop(last, first, code.lanes) as i:
            code.store(code.load(of_hidden, i), of_h, i)
            code.store(code.load(of_cell, i), of_c, i)
        with code.loop(unroll.steps) as steps_after:
            t = unroll.steps - 1 - steps_after
            row = t * batch[0]
            with code.loop(end, begin) as item, code.loop(units, step=code.lanes) as unit:
                retreat(row + item, item, unit)
            with code.loop(units, step=code.lanes) as unit:
                for item, count in code.several(begin, end, _ITEMS_BACK):
                    rows = [row + item + i for i in range(count)]
                    sums = _multiply(code, of_z, rows, w, unit, 4 * units, 1)
                    for i, (total,) in enumerate(sums):
                        at = (item + i) * units + unit
                        code.store(code.load(of_h, at) + total, of_h, at)
    return code.compiled()


def _activations(code: Code, z: Sequence[Vector]) -> list[Vector]:
    """The activations of z's four gates: write, forget, candidate, read."""
    return [code.tanh(x) if gate == 2 else code.sigmoid(x) for gate, x in enumerate(z)]


def _multiply(
    code: Code,
    x: ir.Value,
    rows: Sequence[Place],
    w: ir.Value,
    unit: Place,
    length: int,
    count: int,
) -> list[list[Vector]]:
    """Rows of x `[..., length]` times vectors of so many columns of packed weights."""
    sums = [code.variables([code.zeros()] * count) for _ in rows]
    places = [row * length for row in rows]
    first = unit * (length * count)
    unrolled = 2
    with code.loop(length, step=unrolled) as several:
        for step in range(unrolled):
            k = several + step
            line = first + k * (count * code.lanes)
            weights = [code.load(w, line + i * code.lanes) for i in range(count)]
            for place, totals in zip(places, sums, strict=True):
                factor = code.spread(x, place + k)
                for total, weight in zip(totals, weights, strict=True):
                    total.set(total.get() + factor * weight)
    return [[total.get() for total in totals] for totals in sums]
