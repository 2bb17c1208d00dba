"""benchmarks.profile: what an operation is for, and whose time is whose."""

import collections
from collections.abc import Sequence
from typing import Any

import pytest
from tensorflow.tsl.profiler.protobuf import xplane_pb2

from benchmarks import profile, subject
from tests.benchmarks.commands import TINY
from tests.tensor_ops.vectors import lanes

MS = 10**9  # picoseconds


def _graph_kinds(agent: str, **config: Any) -> collections.Counter[tuple[str, str]]:
    """The number of operations of each type and kind."""
    typed = {name: str(value) for name, value in (TINY[agent] | config).items()}
    measured = subject.make(agent, "paper", {agent: typed})
    update: Any = measured.agent.make_update(measured.spec)
    graph = update.__call__.get_concrete_function(subject.synthetic_batch(measured)).graph
    return collections.Counter((op.type, profile.kind_of(op)) for op in graph.get_operations())


def test_operations_of_a_deep_network_by_what_they_are_for() -> None:
    with lanes(0):
        found = _graph_kinds("impala", torso="resnet")
    of_pooling = {op: n for (op, kind), n in found.items() if kind == profile.POOLING}
    # Four trained rows, and one to bootstrap from, which passes the network alone and forwards.
    assert of_pooling["MaxPool"] == 2 * 3
    assert of_pooling["PartitionedCall"] == 2 * 3  # the gradient, two compiled loops
    assert found["Conv2D", profile.FORWARD] == 2 * 15
    assert found["Conv2DBackpropInput", profile.BY_INPUT] == 15
    assert found["Conv2DBackpropFilter", profile.BY_FILTER] == 15
    # A product for each row and each trained one's gradient; the inputs' by rows of a kind; theirs.
    assert found["MatMul", profile.LSTM] == 5 + 4 + 2 + 3
    # The cell, forwards and backwards, and the weights turned.
    assert found["PartitionedCall", profile.LSTM] == 5 + 4 + 1
    assert found["MatMul", profile.PRODUCTS] == 4 + 2 * 3  # torso; policy and value
    assert found["L2Loss", profile.OPTIMIZER] == 39  # a parameter each, to clip by their norm
    assert found["ResourceApplyRMSProp", profile.OPTIMIZER] == 39


def test_loops_by_what_they_are_for() -> None:
    with lanes(16):
        found = _graph_kinds("impala", torso="resnet")
    loops = {kind: n for (op, kind), n in found.items() if op == "PyFunc"}
    assert loops == {
        profile.FORWARD: 2 * 14,  # all but the first, which sees the four screens
        profile.BY_INPUT: 14,
        profile.BY_FILTER: 14,
        profile.POOLING: 2 * 3 + 3,
    }
    assert found["Conv2D", profile.FORWARD] == 2
    assert found["Conv2DBackpropFilter", profile.BY_FILTER] == 1
    with lanes(16):
        found = _graph_kinds("impala", torso="shallow", lstm_size=16)
    loops = {kind: n for (op, kind), n in found.items() if op == "PyFunc"}
    assert loops == {
        profile.FORWARD: 2 * 2,
        profile.BY_INPUT: 1,
        profile.BY_FILTER: 2,
        profile.LSTM: 2 + 1,
    }


def test_loops_over_tiles_are_of_weights_gradients_alone() -> None:
    with lanes(16, tiles=True):
        found = _graph_kinds("r2d2", torso="dqn", precision="bfloat16")
    loops = {kind: n for (op, kind), n in found.items() if op == "PyFunc"}
    assert loops[profile.BY_FILTER] == 3
    assert not {profile.FORWARD, profile.BY_INPUT} & set(loops)
    assert found["Conv2D", profile.FORWARD] == 3 * 3  # the online network's burn-in is apart
    assert found["Conv2D", profile.BY_INPUT] == 3  # that of bytes is not run: nobody reads it
    assert found["ResourceApplyAdam", profile.OPTIMIZER] > 0


def _space(lines: Sequence[Sequence[tuple[str, int, int]]]) -> xplane_pb2.XSpace:
    """Threads with events: name, begin and duration in milliseconds."""
    space = xplane_pb2.XSpace()
    space.planes.add(name="/host:metadata")
    plane = space.planes.add(name="/host:CPU")
    for events in lines:
        line = plane.lines.add()
        for name, begin, duration in events:
            key = len(plane.event_metadata)
            plane.event_metadata[key].name = name
            line.events.add(metadata_id=key, offset_ps=begin * MS, duration_ps=duration * MS)
    return space


def test_time_within_an_operation_counts_once_and_threads_count_each() -> None:
    kinds = {
        "a/conv": profile.FORWARD,
        "call": profile.LSTM,
        "product": profile.PRODUCTS,
        "adam/mul": profile.OPTIMIZER,
    }
    space = _space(
        [
            [
                ("TFE_Py_ExecuteCancelable", 0, 100),
                ("EagerLocalExecute: __inference___call___1", 0, 99),
                ("ExecutorState::Process", 1, 90),
                ("a/conv:Conv2D", 2, 10),
                ("call:PartitionedCall", 20, 30),
                ("product:MatMul", 25, 5),  # inside the call
                ("call/inlined/add:AddV2", 35, 4),  # so is this, of the same kind
                ("product:MatMul", 50, 7),  # begins as the call ends
                ("TFE_Py_ExecuteCancelable", 120, 30),
            ],
            [("adam/mul:Mul", 3, 2), ("of_tensorflow_alone:_FusedMatMul", 5, 8)],
            [("adam/mul:_FusedConv2D", 0, 3)],
        ]
    )
    seconds, called = profile.attributed(space, kinds)
    assert called == pytest.approx(0.130)
    assert seconds == pytest.approx(
        dict.fromkeys(profile.KINDS, 0.0)
        | {
            profile.FORWARD: 0.013,
            profile.LSTM: 0.025,
            profile.PRODUCTS: 0.012,
            profile.OPTIMIZER: 0.002,
            profile.REST: 0.008,
        }
    )
