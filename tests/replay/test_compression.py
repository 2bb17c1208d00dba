"""Blocks come out of their compression as they went in, and what is no block is refused."""

import numpy as np
import pytest
import tensorflow as tf
import tree
from acme import specs

from replay.blocks import compressed, decompressed
from replay.layout import BlockLayout
from replay.structures import Block, Nest

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


def _spec(observations: Nest) -> specs.EnvironmentSpec:
    number = specs.Array((), np.float32)
    return specs.EnvironmentSpec(observations, specs.DiscreteArray(2), number, number)


def _block(rng: np.random.Generator, rows: int = LAYOUT.num_rows) -> Block:
    observation = tree.map_structure(
        lambda spec: (300 * rng.standard_normal((rows, *spec.shape))).astype(spec.dtype), OBSERVED
    )
    return Block(observation, rng.integers(0, 9, (rows, 6), np.int32))


def _strings(blocks: list[Block]) -> Block:
    """`[1, M]`, as items that a dataset has padded to the longest."""
    stacked = tree.map_structure(lambda *leaves: np.stack(leaves)[np.newaxis], *blocks)
    return tree.map_structure(tf.constant, stacked)


def test_blocks_come_out_as_they_went_in() -> None:
    rng = np.random.default_rng(0)
    blocks = [_block(rng) for _ in range(2)]
    found = decompressed(_strings([compressed(block) for block in blocks]), _spec(OBSERVED), LAYOUT)
    for name, spec in OBSERVED.items():
        leaf = found.observation[name]
        assert leaf.dtype == spec.dtype
        wanted = np.stack([[block.observation[name] for block in blocks]])
        np.testing.assert_array_equal(leaf, wanted)
    np.testing.assert_array_equal(found.records, [[block.records for block in blocks]])


def test_a_slice_of_a_larger_array_is_compressed_as_it_looks() -> None:
    whole = np.arange(300, dtype=np.uint16).astype(np.uint8).reshape(5, 6, 5, 2)
    block = compressed(Block({"frame": whole[..., 0]}, np.zeros((5, 6), np.int32)))
    found = decompressed(_strings([block]), _spec({"frame": OBSERVED["frame"]}), LAYOUT)
    np.testing.assert_array_equal(found.observation["frame"][0, 0], whole[..., 0])


def test_what_a_dataset_pads_with_begins_with_zeros() -> None:
    block = compressed(_block(np.random.default_rng(0)))
    padding = block._replace(observation={name: np.array(b"", object) for name in OBSERVED})
    found = decompressed(_strings([block, padding]), _spec(OBSERVED), LAYOUT)
    assert all(not np.any(leaf[0, 1, 0]) for leaf in found.observation.values())
    assert found.observation["frame"][0, 0].numpy().any()


@pytest.mark.parametrize("rows", [LAYOUT.num_rows - 1, LAYOUT.num_rows + 1])
def test_blocks_of_another_size_are_refused(rows: int) -> None:
    blocks = _strings([compressed(_block(np.random.default_rng(0), rows))])
    with pytest.raises(ValueError, match=r"is none of \d+"):
        decompressed(blocks, _spec(OBSERVED), LAYOUT)


def test_what_was_never_compressed_is_refused() -> None:
    size = (5 * 6 * 5).to_bytes(4, "little")
    nonsense = Block({"frame": tf.constant([[size + b"nonsense"]])}, tf.zeros([1, 1, 5, 6]))
    with pytest.raises(RuntimeError, match="LZ4"):
        decompressed(nonsense, _spec({"frame": OBSERVED["frame"]}), LAYOUT)
