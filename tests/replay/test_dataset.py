"""Batches as a learner sees them: an episode of four steps by hand, stacks, and the sampling."""

import os
from typing import Any

import numpy as np
import pytest
import reverb
import tensorflow as tf
import tree
from acme import specs

from replay.dataset import batches_at_a_time, make_dataset
from replay.frames import FrameStack, stacked
from replay.layout import BlockLayout, Layout
from replay.structures import FIRST, LAST, MID, NO_ACTION, Batch, TableSpec
from tests.replay import streams

BLOCKS = BlockLayout(4, 1)


def episode(rewards: list[float], continuation: float, spare_rows: int = 8) -> list[streams.Row]:
    """One episode, then another that goes on: actions 1, 2, ..., rewards as given."""
    types = [FIRST, *[MID] * (len(rewards) - 1), LAST, FIRST, *[MID] * spare_rows]
    rows = streams.stream(np.random.default_rng(0), np.asarray([types], np.uint8))
    for t, row in enumerate(rows):
        row.step.action[:] = t + 1
        row.step.continuation[:] = continuation if t == len(rewards) - 1 else 1
        row.step.observation["vector"][:] = t + 1
        row.step.observation["frame"][:] = t + 1
        if t < len(rewards):
            row.step.reward[:] = rewards[t]
    return rows


@pytest.mark.parametrize("continuation", [0.0, 1.0])
def test_an_episode_of_four_steps(continuation: float) -> None:
    """Row by row; a termination and a truncation differ in one number, and both end observed."""
    rows = episode([10, 20, 30, 40], continuation)
    batch = streams.through_reverb(rows, streams.queue("q", Layout(2, 6, 6, 2)), 1)
    column = 0
    assert batch.valid[:, column].tolist() == [False] * 2 + [True] * 5 + [False] * 2
    assert batch.mask[:, column].tolist() == [0, 0, 1, 1, 1, 1, 0, 0]
    assert batch.reset[:, column].tolist() == [False] * 2 + [True] + [False] * 6
    assert batch.action[:, column].tolist() == [0, 0, 1, 2, 3, 4, 0, 0]
    assert batch.reward[:, column].tolist() == [0, 0, 10, 20, 30, 40, 0, 0]
    assert batch.continuation[:, column].tolist() == [0, 0, 1, 1, 1, continuation, 0, 0]
    inputs = batch.inputs
    assert inputs.previous_action[:, column].tolist() == [0, 0, NO_ACTION, 1, 2, 3, 4, 0, 0]
    assert inputs.previous_reward[:, column].tolist() == [0, 0, 0, 10, 20, 30, 40, 0, 0]
    assert inputs.observation["vector"][:, column, 0].tolist() == [0, 0, 1, 2, 3, 4, 5, 0, 0]
    stacks = inputs.observation["frame"][:, column, 0, 0].tolist()
    assert stacks == [[0, 0]] * 2 + [[0, 1], [1, 2], [2, 3], [3, 4], [4, 5]] + [[0, 0]] * 2


def test_the_stack_is_the_one_the_actor_acted_on() -> None:
    rows = streams.random_stream(np.random.default_rng(1), 1, 61, longest=12)
    stack = FrameStack(4)
    acted: list[Any] = [
        stack.push(row.step.observation, row.step.step_type == FIRST) for row in rows
    ]
    for t, row in enumerate(rows):
        row.step.reward[:] = t
    layout = Layout(4, 6, 3, 4)
    batch = streams.through_reverb(rows, streams.queue("q", layout), 3)
    assert batch.mask.sum() > 60
    for t, b in np.argwhere(batch.mask == 1):
        stacks = acted[int(batch.reward[t, b])]
        tree.map_structure(
            lambda learned, stacked, t=t, b=b: np.testing.assert_array_equal(
                learned[t, b], stacked[0]
            ),
            batch.inputs.observation,
            stacks,
        )


@pytest.mark.parametrize(
    ("devices", "cores", "num_rows", "expected"),
    [
        ([], 16, 7_680, 2),
        (["GPU:0"], 16, 7_680, 7),
        (["GPU:0"], 8, 7_680, 4),  # the other half is for all else
        (["GPU:0"], 16, 640, 2),
        (["GPU:0"], 1, 7_680, 2),
    ],
)
def test_an_accelerator_has_more_batches_put_together(
    devices: list[str], cores: int, num_rows: int, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tf.config, "list_logical_devices", lambda kind: devices)
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: set(range(cores)))
    assert batches_at_a_time(num_rows) == expected


@pytest.mark.parametrize(
    ("actions", "with_accelerator"),
    [(streams.DISCRETE, False), (streams.SEVERAL, False), (streams.BOUNDED, True)],
    ids=["discrete", "several", "bounded"],
)
def test_the_dataset_gives_the_same_batch_as_its_function(
    actions: specs.BoundedArray, with_accelerator: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its key, probability and table size are Reverb's own."""
    if with_accelerator:  # the processor stands in for one
        device = tf.config.LogicalDevice("/device:CPU:0", "GPU")
        monkeypatch.setattr(tf.config, "list_logical_devices", lambda kind: [device])
    layout = Layout(2, 4, 4, 4)
    spec = TableSpec("t", "prioritized", layout, max_size=100)
    tables = [spec, streams.queue("q", layout)]
    cut = streams.blocks(tables, 4)
    server = streams.serve(tables, cut, actions)
    rows = streams.random_stream(np.random.default_rng(2), 2, 41, 12, actions)
    priorities = {"t": lambda inputs: inputs.values["q"].sum(axis=0)}
    writer = streams.make_writer(server, tables, 2, cut, initial_priorities=priorities)
    streams.write(writer, rows)
    expected = streams.read(server, tables[1], cut, actions)
    states = streams.CORE_STATE
    address = f"localhost:{server.port}"
    environment_spec = streams.environment_spec(actions=actions)
    dataset = make_dataset([address], [spec], environment_spec, states, cut, [8])
    batch = tree.map_structure(lambda x: x.numpy(), stacked(next(iter(dataset))))
    size = expected.mask.shape[1]
    assert (batch.table_size == size).all()
    where = {_identity(expected, b): b for b in range(size)}
    for b in range(8):
        _assert_same_item(batch, b, expected, where[_identity(batch, b)])
    client = reverb.Client(address)
    infos = {s.info.key: s.info for s in client.sample("t", 3_000, emit_timesteps=False)}
    for key, probability in zip(batch.key, batch.probability, strict=True):
        assert infos[key].probability == pytest.approx(probability)


def test_a_batch_of_two_tables_holds_the_items_of_each_in_their_order() -> None:
    layout = Layout(0, 4, 4, crosses_episodes=True)
    queue, copy = streams.queue("queue", layout), streams.queue("copy", layout)
    uniform = TableSpec("uniform", "uniform", layout, max_size=100)
    cut = streams.blocks([queue, copy, uniform], 4)
    server = streams.serve([queue, copy, uniform], cut)
    writer = streams.make_writer(server, [queue, copy, uniform], 2, cut)
    streams.write(writer, streams.random_stream(np.random.default_rng(3), 2, 41, longest=12))
    expected = streams.read(server, copy, cut)
    where = {_identity(expected, b): b for b in range(20)}
    address, states = f"localhost:{server.port}", streams.CORE_STATE
    dataset = make_dataset(
        [address], [queue, uniform], streams.environment_spec(), states, cut, [3, 5]
    ).map(stacked)
    for n, batch in zip(range(6), dataset.as_numpy_iterator(), strict=False):
        assert batch.mask.shape == (4, 8)
        for b in range(3):
            _assert_same_item(batch, b, expected, 3 * n + b)
        for b in range(3, 8):
            _assert_same_item(batch, b, expected, where[_identity(batch, b)])
        assert (batch.table_size[3:] == 20).all()


def _identity(batch: Batch, b: int) -> tuple[bytes, bytes]:
    return batch.log_probability[:, b].tobytes(), batch.core_state[0][b].tobytes()


def _assert_same_item(batch: Batch, b: int, other: Batch, c: int) -> None:
    names = ("action", "reward", "continuation", "mask", "valid", "reset", "life_lost")
    for name in names:
        np.testing.assert_array_equal(getattr(batch, name)[:, b], getattr(other, name)[:, c])
    tree.map_structure(
        lambda x, y: np.testing.assert_array_equal(x[:, b], y[:, c]), batch.inputs, other.inputs
    )


WHOLE, OVERLAPPING = Layout(0, 4, 4), Layout(0, 4, 2)


@pytest.mark.parametrize(
    ("kind", "layouts", "batch_sizes", "num_shards", "message"),
    [
        ("prioritized", [WHOLE], [0], 1, "batch_size must be at least 1, got 0"),
        ("queue", [WHOLE], [10], 1, r"more than a batch and one item \(11\).* got max_size 11"),
        ("uniform", [], [], 1, "got 0 tables and 0 batch sizes"),
        ("uniform", [WHOLE], [1, 1], 1, "got 1 tables and 2 batch sizes"),
        ("uniform", [WHOLE, OVERLAPPING], [1, 1], 1, "need one layout; 't0' has .*, 't1' has"),
        ("uniform", [WHOLE], [6], 4, "'t0' must give a multiple of 4; got a batch size of 6"),
        ("queue", [WHOLE], [6], 3, r"one item \(3\) in each shard, .*; got max_size 11 for 3 in"),
    ],
)
def test_refuses_what_could_never_give_a_batch(
    kind: Any, layouts: list[Layout], batch_sizes: list[int], num_shards: int, message: str
) -> None:
    tables = [TableSpec(f"t{i}", kind, layout, max_size=11) for i, layout in enumerate(layouts)]
    addresses, spec = ["localhost:1"] * num_shards, streams.environment_spec()
    with pytest.raises(ValueError, match=message):
        make_dataset(addresses, tables, spec, (), BLOCKS, batch_sizes)
