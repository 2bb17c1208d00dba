"""Products of tiles, by the processor where it has them, and by arrays."""

from collections.abc import Iterator

import numpy as np
import pytest
import tensorflow as tf

from tensor_ops import tiles
from tensor_ops.tiles import COLUMNS, COUNT, ROWS, Tiles
from tensor_ops.vector_code import Code, Pointer, multiplies_tiles
from tests.tensor_ops.vectors import lanes


@pytest.fixture(autouse=True, params=["processor", "arrays"])
def kind(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    if request.param == "processor" and not multiplies_tiles():
        pytest.skip("this processor multiplies no tiles")
    monkeypatch.setattr(tiles, "multiplies_tiles", lambda: request.param == "processor")
    with lanes(16):
        yield request.param


def _halves(*shape: int) -> np.ndarray:
    numbers = tf.random.stateless_normal(shape, [len(shape), shape[-1]])
    return tf.cast(numbers, tf.bfloat16).numpy()


def test_a_product_is_added_to_what_is_there() -> None:
    """The product of two tiles is added twice to a third."""
    code = Code([Pointer] * 3)
    x, y, total = code.arguments
    mine = Tiles(code)
    last = COUNT - 1
    with mine.configured():
        mine.load(last, total)
        mine.load(0, x)
        mine.load(1, y)
        with code.loop(2):
            mine.multiply(last, 0, 1)
        mine.store(last, total)
    one, other = _halves(ROWS, COLUMNS), _halves(COLUMNS, ROWS)
    in_turns = np.ascontiguousarray(other.reshape(-1, 2, ROWS).transpose(0, 2, 1))
    made = np.random.default_rng(0).normal(size=[ROWS, ROWS]).astype(np.float32)
    expected = made + 2 * one.astype(np.float64) @ other.astype(np.float64)
    code.compiled()(*(array.ctypes.data for array in (one, in_turns, made)))
    np.testing.assert_allclose(made, expected, rtol=1e-5, atol=1e-5)


def test_rows_may_be_apart() -> None:
    code = Code([Pointer] * 2)
    x, y = code.arguments
    mine = Tiles(code)
    with mine.configured():
        mine.load(2, code.beyond(x, 20), 4 * 20)
        mine.store(2, y, 4 * 24)
    given = np.random.default_rng(0).normal(size=[18, 20]).astype(np.float32)
    made = np.zeros([17, 24], np.float32)
    code.compiled()(given.ctypes.data, made.ctypes.data)
    np.testing.assert_array_equal(made[:16, :16], given[1:17, :16])
    assert not made[16].any()
    assert not made[:, 16:].any()
