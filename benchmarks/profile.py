"""Profiles a learner's step: python -m benchmarks.profile --agent=impala

TensorFlow's profiler gives the time of every operation of some steps, and the graph says where in
the source each was made. Operations may overlap, so their shares are of their own sum; Python's
share is of the step. The Config is the paper's and the batch is noise: `benchmarks.learner
--with_replay` measures the cost of a replay's batches. The profile is of the processor even where
there is a GPU: there XLA fuses the operations.
"""

import itertools
import pathlib
import re
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import tensorflow as tf
from absl import flags
from tensorflow.tsl.profiler.protobuf import xplane_pb2

from agents.batches import Fetched
from agents.learner import Learner
from benchmarks import measuring
from benchmarks.measuring import Report, single
from benchmarks.subject import Subject, synthetic_batch

FORWARD, BY_INPUT, BY_FILTER = (
    f"convolution, {way}" for way in ("forward", "by input", "by filter")
)
POOLING, LSTM, PRODUCTS = "pooling", "LSTM", "other matrix products"
OPTIMIZER, REST = "optimizer", "elementwise and the rest"
KINDS = (FORWARD, BY_INPUT, BY_FILTER, POOLING, LSTM, PRODUCTS, OPTIMIZER, REST)

_TYPES = {
    "Conv2D": FORWARD,
    "Conv2DBackpropInput": BY_INPUT,
    "Conv2DBackpropFilter": BY_FILTER,
    "MaxPool": POOLING,
}
# Where an operation was made: part of a file's path, a colon, and the function.
_GRADIENTS = {
    "tensor_ops/convolution.py:_of_inputs": BY_INPUT,
    "tensor_ops/convolution.py:_of_weights": BY_FILTER,
    "tensor_ops/winograd.py:_of_inputs": BY_INPUT,
    "tensor_ops/winograd.py:_of_weights": BY_FILTER,
}
_SOURCES = {
    "tensor_ops/winograd.py:": FORWARD,
    "tensor_ops/pooling.py:": POOLING,
    "tensor_ops/elementwise.py:_sum_of_rows": REST,
    "tensor_ops/lstm.py:": LSTM,
    "agents/optimization.py:": OPTIMIZER,
    "sonnet/src/optimizers/": OPTIMIZER,
}
_SCOPES = {"lstm": LSTM, "global_norm": OPTIMIZER, "clip_by_global_norm": OPTIMIZER}
_OPERATION = re.compile(r"[^\s:]+:\w+")  # as the profiler names one: its name and type
_CALL = "TFE_Py_ExecuteCancelable"  # from Python into TensorFlow and back


def kind_of(op: tf.Operation) -> str:
    """The purpose of an operation of a learner's graph, one of `KINDS`."""
    sources = [f"{frame.filename}:{frame.name}" for frame in reversed(op.traceback)]
    return (
        _first(_GRADIENTS, sources)
        or _TYPES.get(op.type)
        or _first(_SOURCES, sources)
        or next((kind for scope, kind in _SCOPES.items() if scope in op.name.split("/")), None)
        or (PRODUCTS if op.type == "MatMul" else REST)
    )


def _first(kinds: Mapping[str, str], sources: Sequence[str]) -> str | None:
    """The kind of the innermost source that has one."""
    return next((kinds[part] for source in sources for part in kinds if part in source), None)


def attributed(
    space: xplane_pb2.XSpace, kinds: Mapping[str, str]
) -> tuple[dict[str, float], float]:
    """The time of operations by what they are for, and the seconds within TensorFlow's calls.

    The seconds of an operation within another count once, to the inner one. TensorFlow's own
    rewriting of the graph adds operations that have no kind, which count to the rest.
    """
    seconds = dict.fromkeys(KINDS, 0.0)
    called = 0.0
    (plane,) = (plane for plane in space.planes if plane.name == "/host:CPU")
    names = {key: metadata.name for key, metadata in plane.event_metadata.items()}
    for line in plane.lines:
        called += sum(e.duration_ps for e in line.events if names[e.metadata_id] == _CALL) / 1e12
        for operation, own in _own_seconds(line, names):
            seconds[_kind_of_event(operation, kinds)] += own
    return seconds, called


def _kind_of_event(operation: str, kinds: Mapping[str, str]) -> str:
    name, _, kind = operation.partition(":")
    if "FusedConv2D" in kind:  # a convolution, named like what was fused to its end
        return FORWARD
    return kinds.get(name) or kinds.get(name.split("/")[0], REST)


def _own_seconds(line: Any, names: Mapping[int, str]) -> Iterator[tuple[str, float]]:
    """The operations of one thread, each without those inside it: name:type and seconds."""
    inside: list[list[Any]] = []  # name, end, own duration of those that have begun
    for event in sorted(line.events, key=lambda e: (e.offset_ps, -e.duration_ps)):
        if not _OPERATION.fullmatch(names[event.metadata_id]) or not event.duration_ps:
            continue
        name = names[event.metadata_id]
        while inside and inside[-1][1] <= event.offset_ps:
            done = inside.pop()
            yield done[0], done[2] / 1e12
        if inside:
            inside[-1][2] -= event.duration_ps
        inside.append([name, event.offset_ps + event.duration_ps, event.duration_ps])
    for name, _, own in inside:
        yield name, own / 1e12


_STEPS = flags.DEFINE_integer("steps", 5, "Steps that are profiled.", lower_bound=1)


def main(measured: Subject, report: Report) -> None:
    update: Any = measured.agent.make_update(measured.spec)
    batch = synthetic_batch(measured)
    learner = Learner(update, Fetched(itertools.repeat(batch)))
    graph = update.__call__.get_concrete_function(batch).graph
    seconds, space = _profiled(learner.step, _STEPS.value)
    kinds, called = attributed(space, {op.name: kind_of(op) for op in graph.get_operations()})
    total = sum(kinds.values())
    report.add("step", single(1e3 * seconds / _STEPS.value, "ms"))
    report.add("operations", single(1e3 * total / _STEPS.value, "ms"))
    for kind in KINDS:
        report.add(kind, single(100 * kinds[kind] / total, "%"))
    report.add("Python", single(100 * (1 - called / seconds), "%"))


def _profiled(step: Callable[[], object], count: int) -> tuple[float, xplane_pb2.XSpace]:
    """The seconds that so many steps took, after two that warm up, and the profiler's view."""
    for _ in range(2):
        step()
    with tempfile.TemporaryDirectory() as folder:
        tf.profiler.experimental.start(folder)
        started = time.perf_counter()
        for _ in range(count):
            step()
        seconds = time.perf_counter() - started
        tf.profiler.experimental.stop()
        (found,) = pathlib.Path(folder).rglob("*.xplane.pb")
        return seconds, xplane_pb2.XSpace.FromString(found.read_bytes())


if __name__ == "__main__":
    measuring.run(
        main, ["steps"], by_turns=False, before=lambda: tf.config.set_visible_devices([], "GPU")
    )
