"""Tables on a real Reverb server: sampling, removing, rationing, checkpoints, and refusals."""

import pathlib
from typing import Any

import numpy as np
import pytest
import reverb

from replay.layout import BlockLayout, Layout
from replay.structures import TableSpec
from replay.tables import block_layout, fills, make_tables, max_blocks, num_items
from tests.patience import PATIENCE
from tests.replay import streams

LAYOUT = Layout(0, 4, 4)
BLOCKS = BlockLayout(4, 1, by_episode=True)


def table(**overrides: Any) -> TableSpec:
    arguments: dict[str, Any] = {"kind": "prioritized", "layout": LAYOUT, "max_size": 1000}
    return TableSpec("t", **{**arguments, **overrides})


def filled(spec: TableSpec, num_items: int) -> tuple[reverb.Server, reverb.Client]:
    """A server whose table received so many items, with priorities 1, 2, ..."""
    server = streams.filled([spec], range(1, num_items + 1), BLOCKS)
    return server, reverb.Client(f"localhost:{server.port}")


def sampled(client: reverb.Client, count: int) -> list[Any]:
    return [sample.info for sample in client.sample("t", count, emit_timesteps=False)]


@pytest.mark.parametrize("exponent", [0.0, 0.6, 1.0])
def test_prioritized_tables_sample_by_the_power_of_the_priority(exponent: float) -> None:
    server, client = filled(table(priority_exponent=exponent), 4)
    total = sum(p**exponent for p in (1, 2, 3, 4))
    for info in sampled(client, 50):
        assert info.probability == pytest.approx(info.priority**exponent / total)
    assert server.port


@pytest.mark.parametrize("kind", ["prioritized", "uniform"])
def test_the_oldest_items_leave_first(kind: str) -> None:
    server, client = filled(table(kind=kind, max_size=3), 7)
    assert {info.priority for info in sampled(client, 60)} == {5.0, 6.0, 7.0}
    assert server.port


def test_a_queue_hands_out_each_item_once_in_order() -> None:
    server, client = filled(table(kind="queue"), 5)
    assert [info.priority for info in sampled(client, 5)] == [1, 2, 3, 4, 5]
    assert streams.num_items(server, table()) == 0


def test_what_a_table_waits_for_is_known() -> None:
    _, client = filled(table(min_size=5), 2)
    assert fills([client, client], timeout=int(PATIENCE)) == {
        table().name: (4, 10)
    }  # of two shards
    assert num_items([client]) == 2


def test_a_queue_that_does_not_pace_drops_its_oldest_items() -> None:
    server, client = filled(table(kind="queue", max_size=3, paces=False), 7)
    assert [info.priority for info in sampled(client, 3)] == [5, 6, 7]
    assert streams.num_items(server, table()) == 0


def test_a_ratio_that_does_not_pace_accepts_every_item() -> None:
    spec = table(samples_per_insert=1.0, min_size=2, paces=False)
    server, client = filled(spec, 50)  # with nobody sampling
    assert streams.num_items(server, spec) == 50
    assert len(sampled(client, 40)) == 40


def limits(spec: TableSpec) -> Any:
    (made,) = make_tables([spec], streams.environment_spec(), {"t": ()}, BLOCKS)
    return made.info.rate_limiter_info


@pytest.mark.parametrize(
    ("samples_per_insert", "min_size", "buffer"),
    [(1.0, 1, 2.0), (0.1, 1, 2.0), (8.0, 1, 16.0), (3.0, 500, 150.0)],
)
def test_either_side_may_run_ahead(samples_per_insert: float, min_size: int, buffer: float) -> None:
    info = limits(table(samples_per_insert=samples_per_insert, min_size=min_size))
    assert info.samples_per_insert == pytest.approx(samples_per_insert)
    assert info.max_diff - samples_per_insert * min_size == pytest.approx(buffer)
    assert samples_per_insert * min_size - info.min_diff == pytest.approx(buffer)


def test_a_ratio_that_does_not_pace_still_limits_sampling() -> None:
    paced, unpaced = (
        limits(table(samples_per_insert=3.0, min_size=500, paces=paces)) for paces in (True, False)
    )
    assert unpaced.min_diff == paced.min_diff
    assert unpaced.max_diff > 1e300


def test_a_checkpoint_restores_items_and_overrides_the_size(tmp_path: pathlib.Path) -> None:
    checkpointer = reverb.checkpointers.DefaultCheckpointer(str(tmp_path))
    states = {"t": streams.CORE_STATE}
    spec = streams.environment_spec()
    server = reverb.Server(
        make_tables([table(max_size=5)], spec, states, BLOCKS), None, checkpointer
    )
    rows = streams.random_stream(np.random.default_rng(0), 1, 21, longest=1000)
    streams.write(streams.make_writer(server, [table()], 1, BLOCKS), rows)
    reverb.Client(f"localhost:{server.port}").checkpoint()
    server.stop()
    again = reverb.checkpointers.DefaultCheckpointer(str(tmp_path))
    restored = reverb.Server(make_tables([table(max_size=9)], spec, states, BLOCKS), None, again)
    info = reverb.Client(f"localhost:{restored.port}").server_info()["t"]
    assert (info.current_size, info.max_size) == (5, 5)


@pytest.mark.parametrize(
    ("periods", "expected"),
    [([40], 40), ([40, 20], 20), ([16], 16), ([40, 25], 5), ([7], 7), ([100], 25)],
)
def test_block_length_divides_every_period(periods: list[int], expected: int) -> None:
    specs = [table(layout=Layout(0, period, period)) for period in periods]
    assert block_layout(specs).length == expected


@pytest.mark.parametrize("length", [1, 3, 4, 20])
@pytest.mark.parametrize("layout", [Layout(0, 1, 1), Layout(2, 5, 5, 4), Layout(40, 80, 40, 4)])
def test_max_blocks_is_the_most_that_an_item_touches(layout: Layout, length: int) -> None:
    rows = layout.burn_in + layout.length
    touched = [(first + rows - 1) // length - first // length + 1 for first in range(length)]
    assert max_blocks(layout, length) == max(touched)


@pytest.mark.parametrize("burn_in", [0, 1, 7, 8, 9])
@pytest.mark.parametrize("length", [1, 2, 4, 8])
def test_max_blocks_is_what_each_unroll_that_crosses_episodes_touches(
    burn_in: int, length: int
) -> None:
    layout = Layout(burn_in, 16, 8, crosses_episodes=True)
    for trained in range(16, 64, 8):
        first, last = trained - burn_in, trained + 15
        assert max_blocks(layout, length) == last // length - first // length + 1


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ({"max_size": 0}, "max_size must be at least 1, got 0"),
        ({"min_size": 0}, r"between 1 and max_size \(1000\), got 0"),
        ({"min_size": 1001}, r"between 1 and max_size \(1000\), got 1001"),
        ({"samples_per_insert": -2.0}, r"positive or None, got -2\.0"),
        ({"kind": "queue", "samples_per_insert": 1.0}, r"must be None, got 1\.0"),
        ({"kind": "stack"}, "kind must be one of .* got 'stack'"),
        ({"priority_exponent": -1.0}, r"must not be negative, got -1\.0"),
    ],
)
def test_refuses_what_makes_no_sense(overrides: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make_tables([table(**overrides)], streams.environment_spec(), {"t": ()}, BLOCKS)


def test_refuses_equal_names() -> None:
    with pytest.raises(ValueError, match=r"its own name, got \['t', 't'\]"):
        make_tables([table(), table()], streams.environment_spec(), {"t": ()}, BLOCKS)
