"""The sum of many rows as a loop over vectors; in bfloat16 TensorFlow's takes much longer."""

from collections.abc import Callable

from tensor_ops.vector_code import Code, Index, Pointer, Shared, compiled_once

_AT_ONCE = 4  # vectors of a row, whose sums stay in registers


@compiled_once
def rows(features: int, kind: str) -> Callable[..., None]:
    """What `in_parts` calls with x `[N, features]` and the sums of each part, a row each.

    Args:
      features: whole vectors.
      kind: of the numbers of x, as `Code.load` says.
    """
    code = Code([Pointer] * 2 + [Index, Index, Shared])
    x, all_sums, size, parts, taken = code.arguments
    with code.parts(size, parts, taken) as (part, begin, end):
        sums = code.beyond(all_sums, code.times(part, features))
        for first in range(0, features, _AT_ONCE * code.lanes):
            places = range(first, min(first + _AT_ONCE * code.lanes, features), code.lanes)
            totals = code.variables([code.zeros() for _ in places])
            with code.loop(end, begin) as row:
                for place, total in zip(places, totals, strict=True):
                    found = code.load(x, code.sum(code.times(row, features), place), kind)
                    total.set(total.get() + found)
            for place, total in zip(places, totals, strict=True):
                code.store(total.get(), sums, place)
    return code.compiled()
