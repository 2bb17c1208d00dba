"""Loops that TensorFlow calls for parts of a batch, which is whole whatever threads there are."""

import itertools
import os
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from tensor_ops import loops
from tensor_ops.loops import Output, in_parts, num_parts
from tensor_ops.vector_code import Code, Index, Pointer, Shared
from tests.forks import fork
from tests.tensor_ops.vectors import lanes


@pytest.fixture(autouse=True, params=[8, 16])
def size(request: pytest.FixtureRequest) -> Iterator[int]:
    """The number of lanes of a vector."""
    with lanes(request.param):
        yield request.param


def _triple() -> Callable[..., None]:
    """A loop over x and y, whose items are one vector each."""
    code = Code([Pointer, Pointer, Index, Index, Shared])
    x, y, batch, parts, taken = code.arguments
    with code.parts(batch, parts, taken) as (_, begin, end), code.loop(end, begin) as item:
        place = item * code.lanes
        code.store(code.load(x, place) * 3.0, y, place)
    return code.compiled()


@pytest.mark.parametrize("batch", [0, 2, 40])
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("wrap", [lambda f: f, tf.function], ids=["eager", "traced"])
def test_parts_make_up_the_batch(
    wrap: Any, threads: int, batch: int, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loops, "num_threads", lambda: threads)
    run = _triple()
    x = tf.constant(np.random.default_rng(0).normal(size=(batch, size)), tf.float32)

    @wrap
    def tripled(x: tf.Tensor) -> tf.Tensor:
        return in_parts(run, [x], [Output(tf.shape(x))])[0]

    np.testing.assert_array_equal(tripled(x), 3 * x.numpy())


@pytest.mark.parametrize("num_items", [2, 11])
def test_each_part_may_have_a_row_of_its_own(num_items: int, size: int) -> None:
    num_rows = min(num_items, 4)
    code = Code([Pointer, Pointer, Index, Index, Shared])
    x, y, batch, parts, taken = code.arguments
    with code.parts(batch, parts, taken) as (part, begin, end):
        row = code.beyond(y, part * size)
        code.store(code.zeros(), row, 0)
        with code.loop(end, begin) as item:
            code.store(code.load(row, 0) + code.load(x, item * size), row, 0)
    run = code.compiled()
    x = tf.constant(np.arange(num_items * size).reshape(num_items, size), tf.float32)
    (sums,) = in_parts(run, [x], [Output([num_rows, size])], 4)
    bounds = [num_items * i // num_rows for i in range(num_rows + 1)]
    expected = [x[a:b].numpy().sum(axis=0) for a, b in itertools.pairwise(bounds)]
    np.testing.assert_array_equal(sums, expected)


def test_as_many_threads_as_tensorflow_is_told_or_the_process_may_use(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {1, 4, 5})
    told = tf.config.threading
    for number, expected in [(0, 3), (2, 2)]:
        monkeypatch.setattr(told, "get_intra_op_parallelism_threads", lambda number=number: number)
        assert num_parts() == 8 * expected


def test_other_threads_of_this_process_are_waited_for(
    size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    pools, waited = [], []

    def submit(work: Callable[[], None]) -> SimpleNamespace:
        return SimpleNamespace(result=lambda: waited.append(work))

    def pool(process: int) -> SimpleNamespace:
        pools.append(process)
        return SimpleNamespace(submit=submit)

    monkeypatch.setattr(loops, "_threads", pool)
    monkeypatch.setattr(loops, "num_threads", lambda: 3)
    x = tf.ones([4, size])
    in_parts(_triple(), [x], [Output(x.shape)])
    assert pools == [os.getpid()] * 2
    assert len(waited) == 2


def test_a_fork_has_threads_of_its_own() -> None:
    assert list(loops._threads(os.getpid()).map(abs, range(3))) == [0, 1, 2]

    def use_them() -> None:
        assert list(loops._threads(os.getpid()).map(abs, range(4))) == [0, 1, 2, 3]

    assert os.waitpid(fork(use_them), 0)[1] == 0
