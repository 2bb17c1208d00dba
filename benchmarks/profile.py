"""Where the time of a learner's step goes: python -m benchmarks.profile --agent=impala

TensorFlow's profiler gives the time of every operation of some steps, and the graph says where in
the source each was made. Operations may overlap, so their shares are of their own sum; what Python
does between them is a share of the step. The agent's Config is its paper's, and the batch full of
noise: what a replay's batches cost beside the step, `benchmarks.learner --with_replay` measures. It
is of the processor, where a GPU is too: there XLA leaves nothing of single operations.
"""

import itertools
import pathlib
import tempfile
import time
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf
from absl import flags
from tensorflow.tsl.profiler.protobuf import xplane_pb2

from agents.learner import Learner
from benchmarks import batches, command_line, operations
from benchmarks.report import Report, single

_STEPS = flags.DEFINE_integer("steps", 5, "Steps that are profiled.", lower_bound=1)


def main(_: Sequence[str]) -> None:
    tf.config.set_visible_devices([], "GPU")
    measured = command_line.agent()
    update: Any = measured.agent.make_update(measured.spec)
    batch = batches.synthetic(measured)
    learner = Learner(update, itertools.repeat(batch))
    graph = update.__call__.get_concrete_function(batch).graph
    report = Report("profile", measured.settings | {"steps": _STEPS.value})
    seconds, space = profiled(learner.step, _STEPS.value)
    kinds, called = operations.attributed(
        space, {op.name: operations.kind_of(op) for op in graph.get_operations()}
    )
    total = sum(kinds.values())
    report.add("step", single(1e3 * seconds / _STEPS.value, "ms"))
    report.add("operations", single(1e3 * total / _STEPS.value, "ms"))
    for kind in operations.KINDS:
        report.add(kind, single(100 * kinds[kind] / total, "%"))
    report.add("Python", single(100 * (1 - called / seconds), "%"))
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


if __name__ == "__main__":
    command_line.run(main, ["steps"], by_turns=False)
