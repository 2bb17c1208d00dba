"""Random streams of N environments, and the way from a stream through Reverb to one batch."""

import dataclasses
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import reverb
import tensorflow as tf
import tree
from acme import specs

from replay.dataset import to_batch
from replay.frames import stacked
from replay.layout import BlockLayout, Layout
from replay.structures import FIRST, LAST, MID, Batch, Nest, Step, TableSpec
from replay.tables import block_layout, make_tables, max_blocks
from replay.writer import SequenceWriter

CORE_STATE = (np.zeros(3, np.float32), np.zeros((), np.float32))
OBSERVATION = {
    "colour": specs.Array((2, 2, 3), np.uint8),
    "frame": specs.Array((3, 2), np.uint8),
    "vector": specs.Array((2,), np.float32),
    "words": specs.Array((3,), np.int32),
}
DISCRETE = specs.DiscreteArray(5)
BOUNDED = specs.BoundedArray((2,), np.float32, [-1, -2], [1, 2])
SEVERAL = specs.BoundedArray((2,), np.int32, [0, 0], [4, 2])


class Row(NamedTuple):
    """One vector step, as an actor hands it to the writer."""

    step: Step
    core_state: Nest
    values: dict[str, np.ndarray]
    learner_step: int


def environment_spec(
    observation: Any = OBSERVATION, actions: specs.BoundedArray = DISCRETE
) -> specs.EnvironmentSpec:
    number = specs.Array((), np.float32)
    return specs.EnvironmentSpec(observation, actions, number, number)


def queue(name: str, layout: Layout) -> TableSpec:
    """A table that hands out every item once, in the order of insertion."""
    return TableSpec(name, "queue", layout, max_size=10_000)


def step_types(lengths: Sequence[int], num_rows: int) -> list[int]:
    """Episodes of so many steps, each followed by its LAST row; the last may stay unfinished."""
    types: list[int] = []
    for length in lengths:
        types += [FIRST, *[MID] * (length - 1), LAST]
    assert len(types) >= num_rows, (lengths, num_rows)
    return types[:num_rows]


def random_stream(
    rng: np.random.Generator,
    num_environments: int,
    num_rows: int,
    longest: int,
    actions: specs.BoundedArray = DISCRETE,
) -> list[Row]:
    """Episodes of 1 to `longest` steps, terminated or truncated; lives are lost and won."""
    types = [
        step_types(rng.integers(1, longest + 1, size=num_rows).tolist(), num_rows)
        for _ in range(num_environments)
    ]
    return stream(rng, np.asarray(types, np.uint8), actions)


def stream(
    rng: np.random.Generator, types: np.ndarray, actions: specs.BoundedArray = DISCRETE
) -> list[Row]:
    """Random rows with the given step types `[N, num_rows]`; nothing in them is zero."""
    num_environments, num_rows = types.shape
    rows: list[Row] = []
    lives = np.full(num_environments, 5, np.uint8)
    for t in range(num_rows):
        later = np.clip(lives + rng.choice([-1, 0, 1], num_environments, p=[0.3, 0.5, 0.2]), 1, 9)
        begun = rng.integers(1, 6, num_environments)  # maybe fewer than the last episode ended with
        lives = np.where(types[:, t] == FIRST, begun, later).astype(np.uint8)
        # A terminated episode ends with continuation 0 on the row before its LAST one.
        ends = (types[:, t + 1] == LAST) if t + 1 < num_rows else np.zeros(num_environments, bool)
        terminated = ends & (rng.random(num_environments) < 0.5)
        rows.append(_row(rng, types[:, t], lives, terminated, 10 + 3 * t, actions))
    return rows


def _action(rng: np.random.Generator, n: int, actions: specs.BoundedArray) -> np.ndarray:
    if actions is BOUNDED:
        return rng.uniform(actions.minimum, actions.maximum, (n, 2)).astype(np.float32)
    return rng.integers(1, actions.maximum + 1, (n, *actions.shape)).astype(np.int32)


def _row(
    rng: np.random.Generator,
    step_type: np.ndarray,
    lives: np.ndarray,
    terminated: np.ndarray,
    learner_step: int,
    actions: specs.BoundedArray,
) -> Row:
    n = len(step_type)

    def positive(*shape: int) -> np.ndarray:
        return rng.uniform(0.1, 1.0, size=(n, *shape)).astype(np.float32)

    observation = {
        name: rng.integers(1, 256, size=(n, *spec.shape)).astype(spec.dtype)
        for name, spec in OBSERVATION.items()
    }
    step = Step(
        observation=observation,
        step_type=step_type,
        lives=lives,
        action=_action(rng, n, actions),
        log_probability=-positive(),
        reward=positive(),
        continuation=1.0 - terminated.astype(np.float32),
    )
    return Row(step, (positive(3), positive()), {"q": positive(), "v": positive()}, learner_step)


def blocks(tables: Sequence[TableSpec], length: int) -> BlockLayout:
    """The blocks of these tables with another length."""
    return dataclasses.replace(block_layout(tables), length=length)


def serve(
    tables: Sequence[TableSpec], cut: BlockLayout, actions: specs.BoundedArray = DISCRETE
) -> reverb.Server:
    states = {spec.name: CORE_STATE for spec in tables}
    return reverb.Server(make_tables(tables, environment_spec(actions=actions), states, cut))


def make_writer(
    server: reverb.Server,
    tables: Sequence[TableSpec],
    num_environments: int,
    cut: BlockLayout,
    **overrides: Any,
) -> SequenceWriter:
    arguments: dict[str, Any] = {
        "actors": 100 + np.arange(num_environments),
        "tasks": 7 * np.arange(num_environments),
        "agent": 3,
        **overrides,
    }
    client = reverb.Client(f"localhost:{server.port}")
    return SequenceWriter(client, tables, blocks=cut, **arguments)


def write(writer: SequenceWriter, rows: Sequence[Row]) -> None:
    for row in rows:
        append(writer, row)
    writer.flush()


def append(writer: SequenceWriter, row: Row) -> None:
    writer.append(
        row.step, core_state=row.core_state, values=row.values, learner_step=row.learner_step
    )


def filled(
    tables: Sequence[TableSpec], priorities: Sequence[float], cut: BlockLayout
) -> reverb.Server:
    """A server whose tables received an item of each priority, in order, of one long episode."""
    server, given = serve(tables, cut), iter(priorities)
    first = {tables[0].name: lambda inputs: np.asarray([next(given)])}
    writer = make_writer(server, tables, 1, cut, initial_priorities=first)
    types = np.asarray([[FIRST, *[MID] * (cut.length * len(priorities))]], np.uint8)
    write(writer, stream(np.random.default_rng(len(priorities)), types))
    return server


def num_items(server: reverb.Server, spec: TableSpec) -> int:
    return reverb.Client(f"localhost:{server.port}").server_info()[spec.name].current_size


def read(
    server: reverb.Server, spec: TableSpec, cut: BlockLayout, actions: specs.BoundedArray = DISCRETE
) -> Batch:
    """Every item of a queue, in order, as one batch of numpy arrays."""
    client = reverb.Client(f"localhost:{server.port}")
    samples = client.sample(
        spec.name,
        num_samples=num_items(server, spec),
        emit_timesteps=False,
        unpack_as_table_signature=True,
    )
    info, items = zip(*[(sample.info, sample.data) for sample in samples], strict=True)
    count = max_blocks(spec.layout, cut.length) + 1
    padded = [
        item._replace(blocks=tree.map_structure(lambda leaf: _pad(leaf, count), item.blocks))
        for item in items
    ]
    shard = tf.zeros([len(info)], tf.int32)
    environment = environment_spec(actions=actions)
    batch = to_batch(_stack(*info), _stack(*padded), shard, spec.layout, cut, environment)
    return tree.map_structure(lambda leaf: leaf.numpy(), stacked(batch))


def _pad(leaf: np.ndarray, count: int) -> np.ndarray:
    """Pads as a dataset may: behind an item's blocks only a first row of zeros is read."""
    if leaf.dtype == object:
        return np.append(leaf, [b""] * (count - len(leaf)))
    padded = np.ones((count, *leaf.shape[1:]), leaf.dtype)
    padded[: len(leaf)] = leaf
    padded[len(leaf) :, 0] = 0
    return padded


def _stack(*nests: Nest) -> Nest:
    return tree.map_structure(lambda *leaves: tf.constant(np.stack(leaves)), *nests)


def through_reverb(
    rows: Sequence[Row],
    spec: TableSpec,
    length: int,
    actions: specs.BoundedArray = DISCRETE,
    **overrides: Any,
) -> Batch:
    """Writes a stream into one queue, in blocks of that length, and reads it back."""
    cut = blocks([spec], length)
    server = serve([spec], cut, actions)
    writer = make_writer(server, [spec], len(rows[0].step.reward), cut, **overrides)
    write(writer, rows)
    return read(server, spec, cut, actions)
