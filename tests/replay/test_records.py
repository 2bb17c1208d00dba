"""What a row is besides its observation goes through one column of whole numbers unchanged."""

import numpy as np
import pytest
import tensorflow as tf
from acme import specs

from replay import blocks
from replay.structures import Record, Step
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
