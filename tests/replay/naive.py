"""The writer and the dataset again, one environment and one row at a time, in plain Python.

Nothing here knows of buffers or batches, and of blocks only when they leave: an item is found by
walking through an environment's list of rows, and each of its rows is looked up by asking which row
of the stream it is.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import tree

from replay.layout import BlockLayout, Layout
from replay.structures import FIRST, LAST, NO_ACTION, Batch, NetworkInput, PriorityInput
from tests.replay.streams import Row


class Span(NamedTuple):
    """One item: environment, and rows of its stream."""

    environment: int
    origin: int  # no row before it belongs to the item
    trained: int
    end: int  # the row after the last step


def spans(rows: Sequence[Row], layout: Layout, blocks: BlockLayout) -> list[Span]:
    """All items that are complete, in the order in which they are inserted."""
    found = []
    for n in range(len(rows[0].step.reward)):
        departures = list(_departures(rows, n, blocks))
        for span in _spans_of(rows, layout, n):
            # The last step's row must have left, and the observation after it with it.
            found += [(t, span) for t in departures if t >= span.end][:1]
    return [span for _, span in sorted(found, key=lambda x: (x[0], x[1].environment, x[1].trained))]


def _departures(rows: Sequence[Row], n: int, blocks: BlockLayout) -> Iterator[int]:
    """The newest row whenever one of the environment's blocks leaves."""
    start, ended = 0, -blocks.length
    for t, row in enumerate(rows):
        last = row.step.step_type[n] == LAST
        if blocks.by_episode and last and t - ended >= blocks.length:
            start, ended = t + 1, t
            yield t
        elif t - start == blocks.length:
            start = t
            yield t


def _spans_of(rows: Sequence[Row], layout: Layout, n: int) -> Iterator[Span]:
    for first, last in _episodes(rows, n, whole=layout.crosses_episodes):
        trained = first
        while True:
            yield Span(n, first, trained, min(trained + layout.length, last))
            if trained + layout.length >= last:
                break
            trained += layout.period


def _episodes(rows: Sequence[Row], n: int, whole: bool) -> Iterator[tuple[int, int]]:
    """First row and LAST row of each episode; an unfinished one ends far behind the stream."""
    first = 0
    for t, row in enumerate(rows):
        if row.step.step_type[n] == LAST and not whole:
            yield first, t
            first = t + 1
    yield first, len(rows) + 1000


def batch(rows: Sequence[Row], layout: Layout, items: Sequence[Span]) -> dict[str, Any]:
    """The batch that the dataset must make of the items, without the three fields of Reverb's."""
    size = layout.burn_in + layout.length
    fields = [_item(rows, layout, span, size) for span in items]
    stacked = tree.map_structure(lambda *leaves: np.stack(leaves), *fields)
    by_item = ("core_state", "learner_step", "task", "actor", "agent")
    return {
        name: field
        if name in by_item
        else tree.map_structure(lambda x: np.swapaxes(x, 0, 1), field)
        for name, field in stacked.items()
    }


def _item(rows: Sequence[Row], layout: Layout, span: Span, size: int) -> dict[str, Any]:
    wanted = [span.trained - layout.burn_in + t for t in range(size + 1)]
    valid = [span.origin <= r <= span.end for r in wanted]
    acted = [span.origin <= r < span.end for r in wanted][:-1]
    n = span.environment
    start = max(span.origin, span.trained - layout.burn_in)

    def step(name: str) -> np.ndarray:
        return np.stack(
            [
                getattr(rows[r].step, name)[n]
                if a
                else np.zeros_like(getattr(rows[0].step, name)[n])
                for r, a in zip(wanted[:-1], acted, strict=True)
            ]
        )

    types = [rows[r].step.step_type[n] if v else -1 for r, v in zip(wanted, valid, strict=True)]
    inputs = [_network_input(rows, n, r, v, layout) for r, v in zip(wanted, valid, strict=True)]
    return {
        "inputs": tree.map_structure(lambda *leaves: np.stack(leaves), *inputs),
        "reset": np.asarray([kind == FIRST for kind in types]),
        "valid": np.asarray(valid),
        "life_lost": np.asarray(
            [v and _life_lost(rows, n, r) for r, v in zip(wanted, valid, strict=True)]
        ),
        "action": step("action"),
        "log_probability": step("log_probability"),
        "reward": step("reward"),
        "continuation": step("continuation"),
        "mask": np.asarray(
            [a and kind != LAST for a, kind in zip(acted, types[:-1], strict=True)], np.float32
        ),
        "core_state": tree.map_structure(lambda leaf: leaf[n], rows[start].core_state),
        "learner_step": np.asarray(min(row.learner_step for row in rows[start : span.end])),
        "task": np.asarray(7 * n),
        "actor": np.asarray(100 + n),
        "agent": np.asarray(3),
    }


def _life_lost(rows: Sequence[Row], n: int, r: int) -> bool:
    if rows[r].step.step_type[n] == FIRST:
        return False
    return bool(rows[r].step.lives[n] < rows[r - 1].step.lives[n])


def _network_input(
    rows: Sequence[Row], n: int, r: int, valid: bool, layout: Layout
) -> NetworkInput:
    first = valid and rows[r].step.step_type[n] == FIRST
    follows = valid and not first
    action = rows[0].step.action[n]
    none = NO_ACTION if action.dtype == np.int32 else 0
    observation = {
        name: _stack(rows, n, r, name, valid, layout.frame_stack)
        for name in rows[0].step.observation
    }
    return NetworkInput(
        observation=observation,
        previous_action=np.full_like(
            action, rows[r - 1].step.action[n] if follows else none if first else 0
        ),
        previous_reward=np.float32(rows[r - 1].step.reward[n] if follows else 0),
    )


def _stack(
    rows: Sequence[Row], n: int, r: int, name: str, valid: bool, num_frames: int
) -> np.ndarray:
    empty = np.zeros_like(rows[0].step.observation[name][n])
    if empty.ndim == 1:
        return rows[r].step.observation[name][n] if valid else empty
    frames = [empty] * num_frames
    age = 0
    while valid and age < num_frames:
        frames[num_frames - 1 - age] = rows[r - age].step.observation[name][n]
        if rows[r - age].step.step_type[n] == FIRST:
            break
        age += 1
    channels = [frame[..., None] if frame.ndim == 2 else frame for frame in frames]
    return np.concatenate(channels, axis=-1)


def priority_input(rows: Sequence[Row], layout: Layout, items: Sequence[Span]) -> PriorityInput:
    """The input from which the actor must compute the items' first priorities."""
    expected = batch(rows, layout, items)
    values = {}
    for name in rows[0].values:
        values[name] = np.asarray(
            [
                [
                    rows[r].values[name][span.environment] if r <= span.end else 0
                    for r in range(span.trained, span.trained + layout.length + 1)
                ]
                for span in items
            ],
            np.float32,
        ).T
    trained = slice(layout.burn_in, None)
    return PriorityInput(
        values=values,
        reward=expected["reward"][trained],
        continuation=expected["continuation"][trained],
        life_lost=expected["life_lost"][trained],
        mask=expected["mask"][trained],
    )


def assert_equal(actual: Batch, expected: dict[str, Any]) -> None:
    """Compares the batches bit for bit, types and shapes included."""
    for name, field in expected.items():
        tree.map_structure_with_path(
            lambda path, e, a, name=name: _assert_same(f"{name} {path}", a, e),
            field,
            getattr(actual, name),
        )


def _assert_same(name: str, actual: np.ndarray, expected: np.ndarray) -> None:
    assert actual.dtype == expected.dtype, name
    np.testing.assert_array_equal(actual, expected, err_msg=name)
