"""TensorFlow's calls of loops of `vector_code`: for parts of a batch, on all cores."""

import concurrent.futures
import contextlib
import contextvars
import ctypes
import functools
import os
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from tensor_ops import vector_code
from tensor_ops.xla import has_gpu, within_xla

_has_none = contextvars.ContextVar("_has_none", default=False)


@contextlib.contextmanager
def without_loops() -> Iterator[None]:
    """Functions that are traced within this context use TensorFlow's operations alone.

    It is for graphs that leave this process, and for work too small to compile a loop for.
    """
    before = _has_none.set(True)
    try:
        yield
    finally:
        _has_none.reset(before)


def fits(*sizes: int) -> bool:
    """Returns whether loops over so many floats are compiled here, each being whole vectors.

    They are compiled where TensorFlow's operations run on a processor: not within XLA, nor beside a
    GPU, nor in functions that are traced `without_loops`.
    """
    if _has_none.get() or within_xla():
        return False
    if not vector_code.lanes() or has_gpu():
        return False
    return not any(size % vector_code.lanes() for size in sizes)


class Output(NamedTuple):
    """A tensor that a loop writes."""

    shape: Sequence[int | tf.Tensor]
    dtype: tf.DType = tf.float32


@tf.autograph.experimental.do_not_convert
def in_parts(
    run: Callable[..., None],
    inputs: Sequence[tf.Tensor],
    outputs: Sequence[Output],
    most_parts: int | None = None,
) -> list[tf.Tensor]:
    """Calls a loop for parts of a batch on all cores; returns its outputs.

    Args:
      run: void (inputs, outputs, batch size, parts, parts taken), for `Code.parts`. Python's lock
        is taken once for each thread and not for each part: it may be long in coming.
      inputs: the first of them is `[B, ...]`.
      outputs: the tensors that it writes, for the whole batch.
      most_parts: the most parts, where outputs have a row for each; a batch has as many items.
    """
    most = num_parts() if most_parts is None else most_parts
    num_inputs = len(inputs)  # no tensor of a graph is kept by what that graph calls
    # TensorFlow keeps freed memory; numpy would ask the kernel for cleared pages.
    empty = [tf.raw_ops.Empty(shape=out.shape, dtype=out.dtype) for out in outputs]

    def call(*arrays: np.ndarray) -> Sequence[np.ndarray]:
        size = len(arrays[0])
        parts, taken = min(size, most), ctypes.c_int64(0)
        given = [array.ctypes.data for array in arrays]

        def work() -> None:
            run(*given, size, parts, ctypes.addressof(taken))

        others = [_threads(os.getpid()).submit(work) for _ in range(min(num_threads(), parts) - 1)]
        work()
        for other in others:
            other.result()
        return arrays[num_inputs:]

    made = tf.numpy_function(call, [*inputs, *empty], [out.dtype for out in outputs])
    made = tf.nest.flatten(made)  # one is not in a list, where there is no graph
    for result, out in zip(made, empty, strict=True):
        result.set_shape(out.shape)
    return made


def sums_of_parts(run: Callable[..., None], inputs: Sequence[tf.Tensor], size: int) -> tf.Tensor:
    """The sums `[size]` of a loop over a batch. The loop writes a row for each part."""
    most = num_parts()
    rows = Output([tf.minimum(tf.shape(inputs[0])[0], most), size])
    (sums,) = in_parts(run, inputs, [rows], most)
    return tf.reduce_sum(sums, axis=0)


def num_threads() -> int:
    told = tf.config.threading.get_intra_op_parallelism_threads()
    return told or len(os.sched_getaffinity(0))


def num_parts() -> int:
    """Several for each thread, since other processes may want a core."""
    return 8 * num_threads()


@functools.cache
def _threads(process: int) -> concurrent.futures.ThreadPoolExecutor:
    """The process's pool of threads; a fork, which has none, makes another."""
    return concurrent.futures.ThreadPoolExecutor(num_threads())
