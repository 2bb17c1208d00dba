"""Observations of one image."""

import numpy as np
import tensorflow as tf

from replay.structures import Batch

IMAGE = (20, 24, 2)


def with_images(batch: Batch, seed: int = 0) -> Batch:
    """The batch with other observations; padded rows' are zero."""
    images = np.random.default_rng(seed).integers(
        256, size=(*batch.valid.shape, *IMAGE), dtype=np.uint8
    )
    valid = batch.valid.numpy()[..., None, None, None]
    return batch._replace(
        inputs=batch.inputs._replace(observation=tf.constant(np.where(valid, images, 0), tf.uint8))
    )
