"""One table on several servers: sampled as a whole, and priorities go back to the right one."""

import pathlib
from collections.abc import Iterator, Sequence

import numpy as np
import pytest
import reverb
import tree

from replay.dataset import make_dataset
from replay.layout import BlockLayout, Layout
from replay.priorities import importance_weights
from replay.priority_updater import PriorityUpdater
from replay.structures import Batch, TableSpec
from replay.tables import make_tables, shard_of
from tests.replay import streams

LAYOUT = Layout(0, 4, 4, crosses_episodes=True)
BLOCKS = BlockLayout(4, 1)
EXPONENT = 0.9
PRIORITIZED = TableSpec("p", "prioritized", LAYOUT, max_size=100, priority_exponent=EXPONENT)

# First priorities of each shard's items: of very unequal numbers and sums.
PRIORITIES = {
    2: [[30.0, 1.0], [0.05, 0.5, 0.1, 0.2, 0.9, 0.3, 0.7, 0.02, 0.4]],
    3: [[8.0], [0.1, 40.0, 0.3], [1.0, 2.0, 0.5, 4.0, 0.25, 8.0, 0.125]],
}


def read(
    servers: Sequence[reverb.Server], tables: Sequence[TableSpec], batch_sizes: Sequence[int]
) -> Iterator[Batch]:
    addresses = [f"localhost:{server.port}" for server in servers]
    spec, states = streams.environment_spec(), streams.CORE_STATE
    found: Iterator[Batch] = make_dataset(
        addresses, tables, spec, states, BLOCKS, batch_sizes
    ).as_numpy_iterator()
    return found


def items(batch: Batch) -> list[int]:
    """The position of each item in its shard, from the learner steps of its rows."""
    numbers: list[int] = ((batch.learner_step - 10) // 12).tolist()
    return numbers


def naive_probability(priorities: Sequence[Sequence[float]], shard: int, item: int) -> float:
    """Every shard is chosen as often; in it an item by its own priority."""
    total = sum(p**EXPONENT for p in priorities[shard])
    return priorities[shard][item] ** EXPONENT / total / len(priorities)


@pytest.mark.parametrize("num_shards", PRIORITIES)
def test_weights_are_those_of_one_table_that_holds_every_shard_s_items(num_shards: int) -> None:
    priorities = PRIORITIES[num_shards]
    servers = [streams.filled([PRIORITIZED], of_shard, BLOCKS) for of_shard in priorities]
    num_items = sum(len(of_shard) for of_shard in priorities)
    batches = read(servers, [PRIORITIZED], [24])
    smallest = 1.0
    for _ in range(10):
        batch = next(batches)
        assert batch.shard.tolist() == [b * num_shards // 24 for b in range(24)]
        assert batch.shard.dtype == np.int32
        assert (batch.table_size == num_items).all()
        raw = []
        for b, (shard, item) in enumerate(zip(batch.shard, items(batch), strict=True)):
            expected = naive_probability(priorities, shard, item)
            assert batch.probability[b] == pytest.approx(expected)
            raw.append((num_items * expected) ** -0.6)
        weights = importance_weights(batch.probability, batch.table_size, 0.6)
        np.testing.assert_allclose(weights, np.asarray(raw) / max(raw), rtol=1e-5)
        smallest = min(smallest, float(np.min(weights)))
    assert smallest < 0.3


def test_queues_on_several_servers_hand_out_each_item_once_and_in_order() -> None:
    queue = streams.queue("q", LAYOUT)
    servers = [streams.filled([queue], [1.0] * 12, BLOCKS) for _ in range(3)]
    batches = read(servers, [queue], [6])
    for n in range(6):
        batch = next(batches)
        assert batch.shard.tolist() == [0, 0, 1, 1, 2, 2]
        assert items(batch) == [2 * n, 2 * n + 1] * 3
        tree.map_structure(lambda leaf: np.testing.assert_equal(leaf.shape[1], 6), batch.inputs)
    assert [streams.num_items(server, queue) for server in servers] == [0, 0, 0]


def test_priorities_go_back_to_the_shard_an_item_came_from(tmp_path: pathlib.Path) -> None:
    """Also where both servers know the key: here the second began as a copy of the first."""

    def copy(folder: str, begin_with: str | None) -> reverb.Server:
        checkpointer = reverb.checkpointers.DefaultCheckpointer(folder, "", begin_with)
        states = {"p": streams.CORE_STATE}
        tables = make_tables([PRIORITIZED], streams.environment_spec(), states, BLOCKS)
        return reverb.Server(tables, checkpointer=checkpointer)

    original = copy(str(tmp_path / "a"), None)
    writer = streams.make_writer(original, [PRIORITIZED], 1, BLOCKS)
    streams.write(writer, streams.random_stream(np.random.default_rng(0), 1, 17, longest=100))
    saved = reverb.Client(f"localhost:{original.port}").checkpoint()
    servers = [original, copy(str(tmp_path / "b"), saved)]
    clients = [reverb.Client(f"localhost:{server.port}") for server in servers]

    def priorities(client: reverb.Client) -> dict[int, float]:
        samples = client.sample("p", 200, emit_timesteps=False)
        return {int(sample.info.key): sample.info.priority for sample in samples}

    before = priorities(clients[0])
    assert before == priorities(clients[1])
    assert set(before.values()) == {1.0}
    a, b, *others = before
    updater = PriorityUpdater(clients, "p")
    updater.update(
        np.asarray([1, 0, 1], np.int32),
        np.asarray([a, b, b], np.uint64),
        np.asarray([2.0, 3.0, 4.0]),
    )
    updater.close()
    unchanged = dict.fromkeys(others, 1.0)
    assert priorities(clients[0]) == {a: 1.0, b: 3.0, **unchanged}
    assert priorities(clients[1]) == {a: 2.0, b: 4.0, **unchanged}


@pytest.mark.parametrize(
    ("max_size", "min_size", "parts"),
    [
        (10, 4, [(10, 4)]),
        (10, 4, [(5, 2), (5, 2)]),
        (11, 5, [(4, 2), (4, 2), (3, 1)]),
        (5, 5, [(3, 3), (2, 2)]),
        (7, 1, [(3, 1), (2, 1), (2, 1)]),  # each waits for an item
        (3, 2, [(1, 1), (1, 1), (1, 1)]),
    ],
)
def test_sizes_are_divided_and_all_else_stays(
    max_size: int, min_size: int, parts: list[tuple[int, int]]
) -> None:
    whole = TableSpec(
        "t", "prioritized", LAYOUT, max_size, min_size, 3.0, priority_exponent=0.5, paces=False
    )
    shards = [shard_of(whole, shard, len(parts)) for shard in range(len(parts))]
    assert [(shard.max_size, shard.min_size) for shard in shards] == parts
    for shard in shards:
        assert (shard.name, shard.kind, shard.layout) == ("t", "prioritized", LAYOUT)
        assert (shard.samples_per_insert, shard.priority_exponent, shard.paces) == (3.0, 0.5, False)
        make_tables([shard], streams.environment_spec(), {"t": ()}, BLOCKS)
