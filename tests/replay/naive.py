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
from replay.structures import FIRST, LAST, NO_ACTION, Batch, NetworkInput, PriorityInput, Step
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
    steps = [
        [tree.map_structure(lambda leaf, n=n: leaf[n], row.step) for row in rows]
        for n in range(len(rows[0].step.reward))
    ]
    fields = [_item(rows, steps[span.environment], layout, span) for span in items]
    stacked = tree.map_structure(lambda *leaves: np.stack(leaves), *fields)
    by_item = ("core_state", "learner_step", "task", "actor", "agent")
    return {
        name: field
        if name in by_item
        else tree.map_structure(lambda x: np.swapaxes(x, 0, 1), field)
        for name, field in stacked.items()
    }


def _item(rows: Sequence[Row], steps: Sequence[Step], layout: Layout, span: Span) -> dict[str, Any]:
    n, begin = span.environment, span.trained - layout.burn_in
    zero = tree.map_structure(np.zeros_like, steps[0])
    none = NO_ACTION if zero.action.dtype == np.int32 else 0
    inputs, flags, results = [], [], []
    for r in range(begin, begin + layout.burn_in + layout.length + 1):
        valid, acted = span.origin <= r <= span.end, span.origin <= r < span.end
        first = valid and steps[r].step_type == FIRST
        before = steps[r - 1] if valid and not first else zero
        observation = {
            name: _stack(steps, r, name, layout.frame_stack, valid) for name in zero.observation
        }
        inputs.append(
            NetworkInput(
                observation=observation,
                previous_action=np.full_like(zero.action, none) if first else before.action,
                previous_reward=before.reward,
            )
        )
        flags.append((first, valid, valid and not first and steps[r].lives < before.lives))
        done = steps[r] if acted else zero
        is_real = np.float32(acted and done.step_type != LAST)
        results.append((done.action, done.log_probability, done.reward, done.continuation, is_real))
    reset, valid_rows, life_lost = (np.asarray(x, bool) for x in zip(*flags, strict=True))
    names = ("action", "log_probability", "reward", "continuation", "mask")
    start = max(span.origin, begin)
    return {
        "inputs": tree.map_structure(lambda *leaves: np.stack(leaves), *inputs),
        "reset": reset,
        "valid": valid_rows,
        "life_lost": life_lost,
        **{
            name: np.stack(column)
            for name, column in zip(names, zip(*results[:-1], strict=True), strict=True)
        },
        "core_state": tree.map_structure(lambda leaf: leaf[n], rows[start].core_state),
        "learner_step": np.asarray(min(row.learner_step for row in rows[start : span.end])),
        "task": np.asarray(7 * n),
        "actor": np.asarray(100 + n),
        "agent": np.asarray(3),
    }


def _stack(steps: Sequence[Step], r: int, name: str, num_frames: int, valid: bool) -> np.ndarray:
    """A part of row r's observation, images with the frames before them; zeros if not valid."""
    empty = np.zeros_like(steps[0].observation[name])
    if empty.ndim == 1:
        return steps[r].observation[name] if valid else empty
    frames = [empty] * num_frames
    age = 0
    while valid and age < num_frames:
        frames[num_frames - 1 - age] = steps[r - age].observation[name]
        if steps[r - age].step_type == FIRST:
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
