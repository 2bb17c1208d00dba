"""A replay in memory gives what a Reverb server would, and the same again for a seed."""

import dataclasses
import pathlib

import numpy as np
import pytest
import tree

from replay.frames import stacked
from replay.in_memory import InMemoryReplay
from replay.layout import Layout
from replay.structures import FIRST, MID, Batch, TableSpec
from replay.tables import block_layout
from replay.writer import SequenceWriter
from tests.replay import streams

LAYOUT = Layout(burn_in=4, length=8, period=4, frame_stack=3)
SHORT = Layout(burn_in=0, length=2, period=2, frame_stack=1)


def _replay(*tables: TableSpec, sizes: tuple[int, ...], seed: int = 0) -> InMemoryReplay:
    return InMemoryReplay(
        tables,
        streams.environment_spec(),
        streams.CORE_STATE,
        block_layout(tables),
        sizes,
        seed=seed,
    )


def _written(replay: InMemoryReplay, *tables: TableSpec, rows: list[streams.Row]) -> None:
    n = len(rows[0].step.reward)
    writer = SequenceWriter(
        replay,
        tables,
        blocks=block_layout(tables),
        actors=100 + np.arange(n),
        tasks=7 * np.arange(n),
        agent=3,
    )
    streams.write(writer, rows)


def _filled(kind: str, priorities: list[float], *, max_size: int = 100, batch: int = 1) -> tuple:
    """A replay with an item of each priority, whose headers have their numbers as tasks."""
    table = TableSpec("t", kind, SHORT, max_size=max_size, priority_exponent=0.5)  # type: ignore[arg-type]
    replay = _replay(table, sizes=(batch,))
    for number, priority in enumerate(priorities):
        writer = SequenceWriter(
            replay,
            [table],
            blocks=block_layout([table]),
            actors=np.array([0]),
            tasks=np.array([number]),
            agent=0,
            initial_priorities={"t": lambda inputs, p=priority: np.array([p])},  # type: ignore[misc]
        )
        types = np.array([[FIRST, MID, MID]], np.uint8)
        streams.write(writer, streams.stream(np.random.default_rng(number), types))
    return replay, table


def _same(one: Batch, other: Batch, but: tuple[str, ...] = ()) -> None:
    for name in set(Batch._fields) - {*but}:
        pairs = zip(*(tree.flatten(getattr(batch, name)) for batch in (one, other)), strict=True)
        for a, b in pairs:
            np.testing.assert_array_equal(np.asarray(a), np.asarray(b), err_msg=name)


def test_a_queue_gives_the_batch_that_it_gives_through_reverb() -> None:
    table = dataclasses.replace(streams.queue("q", LAYOUT), max_size=500)
    rows = streams.random_stream(np.random.default_rng(3), 3, 60, longest=30)
    cut = block_layout([table])
    server = streams.serve([table], cut)
    streams.write(streams.make_writer(server, [table], 3, cut), rows)
    expected = streams.read(server, table, cut)
    replay = _replay(table, sizes=(len(expected.key),))
    _written(replay, table, rows=rows)
    assert replay.num_items() == len(expected.key) > 20
    given = stacked(replay.sample())
    _same(given, expected, but=("key", "table_size", "probability"))
    assert not replay.has_batch()  # each item is given once


def test_a_queue_drops_its_oldest_item_and_gives_the_others_in_order() -> None:
    replay, _ = _filled("queue", [1.0] * 5, max_size=3)
    given = []
    while replay.has_batch():
        given.append(int(replay.sample().task[0]))
    assert given == [2, 3, 4]


def test_items_are_drawn_in_proportion_to_their_priorities_to_the_exponent() -> None:
    priorities = [0.0, 1.0, 4.0, 9.0, 16.0]
    replay, _ = _filled("prioritized", priorities, batch=8000)
    batch = replay.sample()
    wanted = np.sqrt(priorities) / np.sqrt(priorities).sum()
    count = np.bincount(batch.task.numpy(), minlength=5)
    assert count[0] == 0
    np.testing.assert_allclose(count / 8000, wanted, atol=0.025)  # four standard deviations
    np.testing.assert_allclose(batch.probability.numpy(), wanted[batch.task.numpy()])
    assert set(batch.table_size.numpy()) == {5}


def test_new_priorities_count_and_those_of_items_that_left_do_not() -> None:
    replay, _ = _filled("prioritized", [1.0] * 5, max_size=3, batch=300)
    before = replay.sample()
    keys = dict(zip(before.task.numpy().tolist(), before.key.numpy().tolist(), strict=True))
    assert sorted(keys) == [2, 3, 4]
    gone = min(keys.values()) - 1
    replay.update(
        np.zeros(3, np.int32),
        np.array([keys[3], keys[4], gone], np.uint64),
        np.array([0.0, 4.0, 1e9]),
    )
    after = replay.sample()
    assert set(after.task.numpy()) == {2, 4}
    probability = {int(t): float(p) for t, p in zip(after.task, after.probability, strict=True)}
    assert probability == {2: pytest.approx(1 / 3), 4: pytest.approx(2 / 3)}


@pytest.mark.parametrize("kind", ["uniform", "prioritized"])
def test_where_no_priority_differs_all_are_as_likely(kind: str) -> None:
    """Of a prioritized table in which all are zero, too."""
    replay, _ = _filled(kind, [0.0] * 4, batch=4000)
    batch = replay.sample()
    np.testing.assert_allclose(np.bincount(batch.task.numpy()) / 4000, 0.25, atol=0.03)
    np.testing.assert_allclose(batch.probability.numpy(), 0.25)


def test_a_batch_has_its_share_of_each_table() -> None:
    tables = (streams.queue("q", SHORT), TableSpec("u", "uniform", SHORT, max_size=100))
    replay = _replay(*tables, sizes=(2, 3))
    assert not replay.has_batch()
    types = np.array([[FIRST, *[MID] * 6]], np.uint8)
    _written(replay, *tables, rows=streams.stream(np.random.default_rng(0), types))
    batch = replay.sample()
    assert batch.key.shape == 5
    assert batch.table_size.numpy().tolist() == [3] * 5
    assert batch.probability.numpy().tolist() == pytest.approx([1, 1, 1 / 3, 1 / 3, 1 / 3])
    assert not replay.has_batch()  # one item is left in the queue


def test_what_is_saved_gives_the_same_batches(tmp_path: pathlib.Path) -> None:
    tables = (
        TableSpec("t", "prioritized", LAYOUT, max_size=15),
        TableSpec("empty", "queue", LAYOUT, max_size=9),
    )
    replay, again = _replay(*tables, sizes=(6, 1)), _replay(*tables, sizes=(6, 1), seed=8)
    rows = streams.random_stream(np.random.default_rng(3), 3, 60, longest=30)
    _written(replay, *tables, rows=rows)
    while len(replay._tables["empty"]):
        replay.sample()
    assert not replay.has_batch()
    path = tmp_path / "kept.npz"
    replay.save(path, rows=17)
    assert int(again.load(path)["rows"]) == 17
    assert [file.name for file in tmp_path.iterdir()] == ["kept.npz"]
    for both in (replay, again):
        _written(both, *tables, rows=rows[:30])
    assert replay.has_batch()
    for _ in range(3):
        _same(replay.sample(), again.sample(), but=("key",))
    # A block that items share is stored once.
    stored = np.load(path)
    assert len(stored["blocks/0"].shape) == 2
    assert stored["counts/0"].sum() > len(stored["sizes/0"])


def test_a_file_of_another_agent_or_a_damaged_one_is_refused(tmp_path: pathlib.Path) -> None:
    replay, _ = _filled("uniform", [1.0, 1.0])
    path = tmp_path / "kept.npz"
    replay.save(path)
    other = _replay(TableSpec("other", "uniform", SHORT, max_size=7), sizes=(1,))
    with pytest.raises(ValueError, match=r"kept.npz cannot be .* replay: it is of .*'t'.*'other'"):
        other.load(path)
    whole = path.read_bytes()
    for damaged in (whole[:100], whole[:-100], b"", whole.replace(b"PK", b"KP")):
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match=r"kept.npz cannot be this agent's replay"):
            replay.load(path)
    assert replay.num_items() == 2
    with pytest.raises(FileNotFoundError):
        replay.load(tmp_path / "none.npz")
