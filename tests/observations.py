"""Observations of an image, alone or with an instruction, as environments with words give them."""

from collections.abc import Mapping

import numpy as np
import tensorflow as tf
import tree
from acme import specs

from replay.structures import Batch
from tests.batches import NUM_ACTIONS, environment_spec

IMAGE = (20, 24, 2)  # alone
COLOURED = (32, 36, 3)  # with an instruction
NUM_WORDS = 11
LONGEST = 6  # words of an instruction


def spec_with_words(num_actions: int = NUM_ACTIONS) -> specs.EnvironmentSpec:
    """The spec of an environment with words."""
    observations = {
        "image": specs.BoundedArray(COLOURED, np.uint8, 0, 255, "image"),
        "instruction": specs.BoundedArray((LONGEST,), np.int32, 0, NUM_WORDS, "instruction"),
    }
    return environment_spec(num_actions=num_actions)._replace(observations=observations)


def random_observation(rng: np.random.Generator, *shape: int) -> dict[str, np.ndarray]:
    """An observation with these leading axes; its instructions have all lengths, none too."""
    words = rng.integers(1, NUM_WORDS + 1, size=(*shape, LONGEST))
    length = rng.integers(LONGEST + 1, size=(*shape, 1))
    return {
        "image": rng.integers(256, size=(*shape, *COLOURED), dtype=np.uint8),
        "instruction": np.where(np.arange(LONGEST) < length, words, 0).astype(np.int32),
    }


def with_images(batch: Batch, seed: int = 0) -> Batch:
    """The batch with images alone."""
    shape = (*batch.valid.shape, *IMAGE)
    return _showing(np.random.default_rng(seed).integers(256, size=shape, dtype=np.uint8), batch)


def with_words(batch: Batch, seed: int = 0) -> Batch:
    """The batch with images and instructions."""
    return _showing(random_observation(np.random.default_rng(seed), *batch.valid.shape), batch)


def _showing(observation: np.ndarray | Mapping[str, np.ndarray], batch: Batch) -> Batch:
    """The batch with another observation; padded rows' is zero."""

    def padded(leaf: np.ndarray) -> tf.Tensor:
        valid = np.reshape(batch.valid, batch.valid.shape + (1,) * (leaf.ndim - 2))
        return tf.constant(np.where(valid, leaf, 0), leaf.dtype)

    shown = tree.map_structure(padded, observation)
    return batch._replace(inputs=batch.inputs._replace(observation=shown))
