"""Where the time of a learner's step goes: python -m benchmarks.profile --agent=impala

TensorFlow's profiler gives the time of every operation of some steps, and the graph says where in
the source each was made. Operations may overlap, so their shares are of their own sum; what Python
does between them is a share of the step. The agent's Config is its paper's, and the batch full of
noise: what a replay's batches cost beside the step, `benchmarks.learner --with_replay` measures.
"""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

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

from agents.learner import Learner
from benchmarks import batches, command_line
from benchmarks.report import Report, single

FORWARD, BY_INPUT, BY_FILTER = (
    f"convolution, {way}" for way in ("forward", "by input", "by filter")
)
POOLING, LSTM, PRODUCTS = "pooling", "LSTM", "other matrix products"
OPTIMIZER, REST, PYTHON = "optimizer", "elementwise and the rest", "Python"
KINDS = (FORWARD, BY_INPUT, BY_FILTER, POOLING, LSTM, PRODUCTS, OPTIMIZER, REST)

_TYPES = {
    "Conv2D": FORWARD,
    "Conv2DBackpropInput": BY_INPUT,
    "Conv2DBackpropFilter": BY_FILTER,
    "MaxPool": POOLING,
}
# Where an operation was made: part of a file's path, a colon, and the function.
_SOURCES = {
    "agents/networks/layers.py:of_input": POOLING,
    "agents/networks/recurrence.py:": LSTM,
    "agents/optimization.py:": OPTIMIZER,
    "sonnet/src/optimizers/": OPTIMIZER,
}
_SCOPES = {"lstm": LSTM, "global_norm": OPTIMIZER, "clip_by_global_norm": OPTIMIZER}
_OPERATION = re.compile(r"[^\s:]+:\w+")  # as the profiler names one: its name and type
_CALL = "TFE_Py_ExecuteCancelable"  # from Python into TensorFlow and back

_STEPS = flags.DEFINE_integer("steps", 5, "Steps that are profiled.", lower_bound=1)


def main(_: Sequence[str]) -> None:
    measured = command_line.agent()
    update: Any = measured.agent.make_update(measured.spec)
    batch = batches.synthetic(measured)
    learner = Learner(update, itertools.repeat(batch))
    graph = update.__call__.get_concrete_function(batch).graph
    report = Report("profile", measured.settings | {"steps": _STEPS.value})
    seconds, space = profiled(learner.step, _STEPS.value)
    kinds, called = attributed(space, {op.name: kind_of(op) for op in graph.get_operations()})
    total = sum(kinds.values())
    report.add("step", single(1e3 * seconds / _STEPS.value, "ms"))
    report.add("operations", single(1e3 * total / _STEPS.value, "ms"))
    for kind in KINDS:
        report.add(kind, single(100 * kinds[kind] / total, "%"))
    report.add(PYTHON, single(100 * (1 - called / seconds), "%"))
    report.print()


def profiled(step: Callable[[], object], count: int) -> tuple[float, xplane_pb2.XSpace]:
    """The seconds that so many steps took, after two that warm up, and what was seen of them."""
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


def kind_of(op: tf.Operation) -> str:
    """What an operation of a learner's graph is for, one of `KINDS`."""
    if op.type in _TYPES:
        return _TYPES[op.type]
    sources = [f"{frame.filename}:{frame.name}" for frame in op.traceback]
    for source in reversed(sources):  # from the innermost
        for part, kind in _SOURCES.items():
            if part in source:
                return kind
    for scope, kind in _SCOPES.items():
        if scope in op.name.split("/"):
            return kind
    return PRODUCTS if op.type == "MatMul" else REST


def attributed(
    space: xplane_pb2.XSpace, kinds: Mapping[str, str]
) -> tuple[dict[str, float], float]:
    """The time of operations by what they are for.

    Args:
      space: what the profiler saw.
      kinds: of each operation of the graph by its name. TensorFlow's own rewriting of the graph
        adds some that have none, which count to the rest.

    Returns:
      Seconds of each of `KINDS`, those of an operation within another counted once, to the inner
      one; and the seconds between TensorFlow's calls and their returns.
    """
    seconds = dict.fromkeys(KINDS, 0.0)
    called = 0.0
    (plane,) = (plane for plane in space.planes if plane.name == "/host:CPU")
    names = {key: metadata.name for key, metadata in plane.event_metadata.items()}
    for line in plane.lines:
        called += sum(e.duration_ps for e in line.events if names[e.metadata_id] == _CALL) / 1e12
        for name, own in _own_seconds(line, names):
            seconds[kinds.get(name) or kinds.get(name.split("/")[0], REST)] += own
    return seconds, called


def _own_seconds(line: Any, names: Mapping[int, str]) -> Iterator[tuple[str, float]]:
    """The operations of one thread, each without those inside it: name and seconds."""
    inside: list[list[Any]] = []  # name, end, own duration of those that have begun
    for event in sorted(line.events, key=lambda e: (e.offset_ps, -e.duration_ps)):
        if not _OPERATION.fullmatch(names[event.metadata_id]) or not event.duration_ps:
            continue
        name = names[event.metadata_id].partition(":")[0]
        while inside and inside[-1][1] <= event.offset_ps:
            done = inside.pop()
            yield done[0], done[2] / 1e12
        if inside:
            inside[-1][2] -= event.duration_ps
        inside.append([name, event.offset_ps + event.duration_ps, event.duration_ps])
    for name, _, own in inside:
        yield name, own / 1e12


if __name__ == "__main__":
    command_line.run(main, ["steps"], by_turns=False)
