"""The writer and the dataset together, on a real Reverb server, against their naive twin."""

from typing import Any

import numpy as np
import pytest
from acme import specs

from replay.layout import BlockLayout, Layout
from replay.structures import FIRST, LAST, MID, PriorityInput, TableSpec
from replay.writer import SequenceWriter, WriterStopped
from tests.replay import naive, streams

BLOCKS = BlockLayout(4, 1, by_episode=True)  # as for Layout(0, 4, 4)

# burn-in, length, period, frames | block length, environments
RANDOM_CASES = [
    (Layout(0, 4, 4, 1), 4, 1),
    (Layout(2, 4, 2, 4), 2, 3),
    (Layout(4, 4, 2, 3), 1, 2),  # period below the burn-in
    (Layout(4, 6, 3, 4), 3, 2),  # a period that does not divide the length
    (Layout(4, 8, 4, 2), 4, 5),
    (Layout(2, 10, 10, 4), 5, 2),
    (Layout(0, 5, 4, 1), 4, 2),  # items that end just after a block wait for the next
    (Layout(2, 4, 4, 2, crosses_episodes=True), 2, 2),
    (Layout(0, 8, 2, 1, crosses_episodes=True), 2, 3),  # unrolls that overlap
    (Layout(2, 7, 3, 1, crosses_episodes=True), 3, 2),
]


# Each of them with two kinds of actions, and each kind with layouts that cross episodes and not.
ACTIONS = (streams.DISCRETE, streams.SEVERAL, streams.BOUNDED)
CASES = [
    (seed, ACTIONS[(number + seed) % 3], *case)
    for number, case in enumerate(RANDOM_CASES)
    for seed in (0, 1)
]


@pytest.mark.parametrize(("seed", "actions", "layout", "length", "num_environments"), CASES)
def test_equals_the_naive_twin(
    seed: int, actions: specs.BoundedArray, layout: Layout, length: int, num_environments: int
) -> None:
    rng = np.random.default_rng(seed)
    rows = streams.random_stream(rng, num_environments, 60, 3 * layout.length, actions)
    spec = streams.queue("r2d2", layout)
    seen: list[PriorityInput] = []

    def priority(inputs: PriorityInput) -> np.ndarray:
        seen.append(inputs)
        return inputs.values["q"].sum(axis=0)

    priorities = {"r2d2": priority}
    batch = streams.through_reverb(rows, spec, length, actions, initial_priorities=priorities)
    items = naive.spans(rows, layout, streams.blocks([spec], length))
    naive.assert_equal(batch, naive.batch(rows, layout, items))
    expected = naive.priority_input(rows, layout, items)
    values = {name: np.concatenate([i.values[name] for i in seen], axis=1) for name in ("q", "v")}
    for name, value in values.items():
        np.testing.assert_array_equal(value, expected.values[name], err_msg=name, strict=True)
    for name in ("reward", "continuation", "life_lost", "mask"):
        joined = np.concatenate([getattr(inputs, name) for inputs in seen], axis=1)
        np.testing.assert_array_equal(joined, getattr(expected, name), err_msg=name, strict=True)


@pytest.mark.parametrize(
    ("actions", "crossing", "longest"),
    [
        (streams.DISCRETE, Layout(0, 4, 4, 4, crosses_episodes=True), 3),
        (streams.SEVERAL, Layout(4, 4, 4, 1, crosses_episodes=True), 12),
        (streams.BOUNDED, Layout(2, 8, 4, 3, crosses_episodes=True), 6),
    ],
)
def test_one_stream_feeds_two_kinds_of_table(
    actions: specs.BoundedArray, crossing: Layout, longest: int
) -> None:
    rows = streams.random_stream(np.random.default_rng(2), 3, 50, longest, actions)
    tables = [streams.queue("r2d2", Layout(2, 8, 4, 4)), streams.queue("impala", crossing)]
    cut = streams.blocks(tables, 4)
    server = streams.serve(tables, cut, actions)
    streams.write(streams.make_writer(server, tables, 3, cut), rows)
    for spec in tables:
        items = naive.spans(rows, spec.layout, cut)
        batch = streams.read(server, spec, cut, actions)
        naive.assert_equal(batch, naive.batch(rows, spec.layout, items))


@pytest.mark.parametrize("crosses", [False, True])
@pytest.mark.parametrize("layout", [(0, 4, 4), (4, 4, 2), (2, 6, 4)])
def test_every_step_is_trained_and_time_is_contiguous(
    layout: tuple[int, int, int], crosses: bool
) -> None:
    """No step is dropped, however short its episode, and no item skips or repeats one."""
    cut = Layout(*layout, crosses_episodes=crosses)
    rows = streams.random_stream(np.random.default_rng(3), 2, 80, longest=10)
    for t, row in enumerate(rows):
        row.step.reward[:] = t
    batch = streams.through_reverb(rows, streams.queue("q", cut), 2)
    trained: set[tuple[int, int]] = set()
    for b, actor in enumerate(batch.actor):
        real = np.flatnonzero(batch.mask[:, b])
        inside = np.arange(real[0], real[-1] + 1)  # LAST rows may lie between
        np.testing.assert_array_equal(np.diff(batch.reward[inside, b]), 1)
        assert crosses or len(inside) == len(real)
        trained |= {(actor - 100, int(batch.reward[t, b])) for t in real if t >= cut.burn_in}
    steps = {
        (n, t)
        for n in range(2)
        for t in range(60)  # the last rows may belong to unfinished items
        if rows[t].step.step_type[n] != LAST
    }
    assert steps <= trained


def test_a_long_episode_s_blocks_outlast_the_short_ones_of_its_neighbours() -> None:
    """One environment's blocks are needed while the others' ends of episodes make more than it."""
    layout = Layout(8, 16, 8, 2)
    spec = streams.queue("q", layout)
    short = streams.step_types([1] * 100, 200)  # each episode could end a block
    long = streams.step_types([199], 200)
    types = np.asarray([long, *[short] * 7], np.uint8)
    rows = streams.stream(np.random.default_rng(12), types)
    batch = streams.through_reverb(rows, spec, 8)
    items = naive.spans(rows, layout, streams.blocks([spec], 8))
    naive.assert_equal(batch, naive.batch(rows, layout, items))
    assert sum(item.environment == 0 for item in items) == 24


def test_another_network_s_reader_gets_its_own_initial_state() -> None:
    rows = streams.random_stream(np.random.default_rng(5), 2, 30, longest=9)
    tables = [streams.queue("acts", Layout(0, 4, 4)), streams.queue("reads", Layout(0, 4, 4))]
    cut = streams.blocks(tables, 4)
    server = streams.serve(tables, cut)
    foreign = {"reads": streams.CORE_STATE}
    streams.write(streams.make_writer(server, tables, 2, cut, foreign_core_states=foreign), rows)
    assert (streams.read(server, tables[0], cut).core_state[0] > 0).all()
    assert (streams.read(server, tables[1], cut).core_state[0] == 0).all()


def prioritized(**overrides: Any) -> TableSpec:
    arguments = {"max_size": 1000, **overrides}
    return TableSpec("r2d2", "prioritized", Layout(0, 4, 4), **arguments)


@pytest.mark.parametrize(
    ("priority", "message"),
    [
        (lambda inputs: inputs.reward, r"must have shape \(1,\), got \(4, 1\)"),
        (lambda inputs: np.asarray([-1.0]), "finite and not negative"),
        (lambda inputs: np.asarray([np.nan]), "finite and not negative"),
    ],
)
def test_refuses_initial_priorities_that_make_no_sense(priority: Any, message: str) -> None:
    spec = prioritized()
    server = streams.serve([spec], BLOCKS)
    writer = streams.make_writer(server, [spec], 1, BLOCKS, initial_priorities={"r2d2": priority})
    rows = streams.stream(np.random.default_rng(7), np.asarray([[FIRST, MID, MID, MID, MID]]))
    with pytest.raises(ValueError, match=message):
        streams.write(writer, rows)


def write_until_stopped(writer: SequenceWriter, rows: list[streams.Row]) -> int:
    for t, row in enumerate(rows):
        try:
            streams.append(writer, row)
        except WriterStopped:
            return t
    raise AssertionError("The rate limiter never blocked.")


def test_a_rate_limiter_blocks_until_asked_to_stop() -> None:
    spec = prioritized(samples_per_insert=1.0, min_size=3)
    server = streams.serve([spec], BLOCKS)
    asked = []

    def should_stop() -> bool:
        asked.append(True)
        return len(asked) > 1

    writer = streams.make_writer(server, [spec], 1, BLOCKS, should_stop=should_stop)
    rows = streams.random_stream(np.random.default_rng(8), 1, 400, longest=1000)
    stopped_at = write_until_stopped(writer, rows)
    assert len(asked) == 2  # the first refusal to stop made it wait again
    # Three items to begin with, two that the error buffer lets through, and the ones that wait.
    assert streams.num_items(server, spec) == 5
    assert stopped_at == 4 * 7


@pytest.mark.parametrize(
    ("types", "row"),
    [([MID], 0), ([FIRST, FIRST], 1), ([FIRST, LAST, MID], 2), ([FIRST, MID, FIRST], 2)],
)
def test_refuses_a_first_row_in_the_wrong_place(types: list[int], row: int) -> None:
    spec = streams.queue("q", Layout(0, 4, 4))
    writer = streams.make_writer(streams.serve([spec], BLOCKS), [spec], 1, BLOCKS)
    rows = streams.stream(np.random.default_rng(0), np.asarray([types], np.uint8))
    with pytest.raises(ValueError, match=f"at row {row} environments"):
        streams.write(writer, rows)


def test_refuses_a_field_of_another_number_of_environments() -> None:
    spec = streams.queue("q", Layout(0, 4, 4))
    writer = streams.make_writer(streams.serve([spec], BLOCKS), [spec], 2, BLOCKS)
    row = streams.random_stream(np.random.default_rng(0), 2, 1, longest=5)[0]
    with pytest.raises(ValueError, match=r"'q'.* has 1"):
        writer.append(
            row.step, core_state=row.core_state, values={"q": np.zeros(1)}, learner_step=0
        )
