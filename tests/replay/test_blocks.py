"""Blocks: when they begin and end; their contents come out as they went in."""

import numpy as np
import pytest
import tensorflow as tf
import tree
from acme import specs

from replay import blocks
from replay.blocks import BlockBuffer, compressed, decompress
from replay.layout import BlockLayout
from replay.structures import Block, Record, Step
from tests.replay import streams

ONE = specs.BoundedArray((1,), np.float32, [-1], [1])
ODD = np.asarray([0.1, -0.0, np.nan, np.inf, -1e-40, 3.4e38], np.float32)
COUNT = len(ODD)


def _step(actions: specs.Array) -> Step:
    rng = np.random.default_rng(0)
    if actions.dtype == np.float32:
        action = np.resize(ODD[::-1], (COUNT, *actions.shape)).copy()
    else:
        action = rng.integers(-(2**31), 2**31, (COUNT, *actions.shape)).astype(np.int32)
    return Step(
        observation=None,
        step_type=np.asarray([0, 1, 2, 0, 1, 2], np.uint8),
        lives=np.asarray([0, 1, 127, 128, 254, 255], np.uint8),
        action=action,
        log_probability=np.roll(ODD, 1),
        reward=np.roll(ODD, 2),
        continuation=np.roll(ODD, 3),
    )


@pytest.mark.parametrize("actions", [streams.DISCRETE, streams.SEVERAL, streams.BOUNDED, ONE])
def test_every_bit_comes_back(actions: specs.Array) -> None:
    step = _step(actions)
    packed = blocks.pack(step)
    assert (packed.shape, packed.dtype) == ((COUNT, blocks.width(actions)), np.int32)
    for shape in ((COUNT,), (2, 3)):
        found = blocks.unpack(tf.reshape(packed, [*shape, packed.shape[1]]), actions)
        for name in Record._fields:
            given, got = getattr(step, name), np.asarray(getattr(found, name))
            assert got.dtype == given.dtype, name
            assert got.shape == (*shape, *given.shape[1:]), name
            assert got.tobytes() == given.tobytes(), name


def test_doubles_are_rounded_as_numpy_does() -> None:
    step = _step(streams.DISCRETE)._replace(reward=np.full(COUNT, 0.1))
    found = blocks.unpack(tf.constant(blocks.pack(step)), streams.DISCRETE)
    assert (np.asarray(found.reward) == np.float32(0.1)).all()


LAYOUT = BlockLayout(length=3, context=1, by_episode=True)
OBSERVED = {
    "frame": specs.BoundedArray((6, 5), np.uint8, 0, 255),
    "colour": specs.BoundedArray((4, 4, 3), np.uint8, 0, 255),
    "vector": specs.Array((7,), np.float32),
    "number": specs.Array((), np.float64),
    "flag": specs.Array((), np.bool_),
    "words": specs.Array((9,), np.int32),
    "nothing": specs.Array((0,), np.float32),
}


def _block(rng: np.random.Generator, rows: int = LAYOUT.num_rows) -> Block:
    observation = tree.map_structure(
        lambda spec: (300 * rng.standard_normal((rows, *spec.shape))).astype(spec.dtype), OBSERVED
    )
    return Block(observation, rng.integers(0, 9, (rows, 6), np.int32))


def test_blocks_come_out_as_they_went_in() -> None:
    block = _block(np.random.default_rng(0))
    found = compressed(block)
    for name, spec in OBSERVED.items():
        array = np.empty((LAYOUT.num_rows, *spec.shape), spec.dtype)
        decompress(found.observation[name].item(), array)
        np.testing.assert_array_equal(array, block.observation[name])
    np.testing.assert_array_equal(found.records, block.records)


def test_a_slice_of_a_larger_array_is_compressed_as_it_looks() -> None:
    whole = np.arange(300, dtype=np.uint16).astype(np.uint8).reshape(5, 6, 5, 2)
    block = compressed(Block({"frame": whole[..., 0]}, np.zeros((5, 6), np.int32)))
    found = np.empty((5, 6, 5), np.uint8)
    decompress(block.observation["frame"].item(), found)
    np.testing.assert_array_equal(found, whole[..., 0])


@pytest.mark.parametrize("rows", [LAYOUT.num_rows - 1, LAYOUT.num_rows + 1])
def test_blocks_of_another_size_are_refused(rows: int) -> None:
    block = compressed(_block(np.random.default_rng(0), rows))
    for name, spec in OBSERVED.items():
        if np.prod(spec.shape):
            with pytest.raises(ValueError, match=r"is none of \d+"):
                decompress(block.observation[name].item(), np.empty((5, *spec.shape), spec.dtype))


def test_what_was_never_compressed_is_refused() -> None:
    size = (5 * 6 * 5).to_bytes(4, "little")
    with pytest.raises(RuntimeError, match="LZ4"):
        decompress(size + b"nonsense", np.empty((5, 6, 5), np.uint8))


def test_an_episode_begins_a_block_unless_another_just_did() -> None:
    """Long episodes' items then fill their blocks; short ones do not make a block each."""
    types = streams.step_types([5, 11, 1, 1, 1, 1, 20], 46)
    rows = streams.stream(np.random.default_rng(13), np.asarray([types], np.uint8))
    buffer = BlockBuffer(BlockLayout(4, 1, by_episode=True), 1)
    found = []
    for t, row in enumerate(rows):
        for n in buffer.write(row.step):
            start, block = buffer.block(n)
            found.append((start, t))
            before = 0 if start in (0, 6, 18, 22, 26) else types[start - 1]
            own = types[start : t + 1]  # and the row after them, if an episode did not end before
            assert block.records[:, 0].tolist() == [before, *own, *[0] * (5 - len(own))]
    first, second = [(0, 4), (4, 5)], [(6, 10), (10, 14), (14, 17)]
    of_two_steps = [(18, 21), (22, 25)]  # two episodes in each
    assert found == [*first, *second, *of_two_steps, (26, 30), (30, 34), (34, 38), (38, 42)]
