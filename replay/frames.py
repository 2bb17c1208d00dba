"""Frame stacking, the same for the actor (numpy, by step) and the learner (TensorFlow, by batch).

Frames are stored once. A network input holds the last k frames of its episode, oldest first, on the
last axis; a frame older than the episode's first one is zero:

    row         0      1       2         3
    step_type   FIRST  MID     LAST      FIRST
    stack, k=3  0 0 a  0 a b   a b c     0 0 d

An observation leaf of two axes `[H, W]` becomes `[H, W, k]` and one of three `[H, W, C]` becomes
`[H, W, C * k]`; anything else, a vector or a number, has no frames and stays as it is.
"""

import functools
from collections.abc import Sequence

import numpy as np
import tensorflow as tf
import tree

from replay.structures import Batch, Nest


def is_image(leaf_rank: int) -> bool:
    """Returns whether an observation leaf of that many axes (batch axes excluded) is stacked."""
    return leaf_rank in (2, 3)


class FrameStack:
    """The stacks of N environments that advance together."""

    def __init__(self, num_frames: int) -> None:
        """Makes an empty stack of k frames; the first `push` decides N and the shapes."""
        self._num_frames = num_frames
        self._stacks: Nest = None  # the newest

    def push(self, observation: Nest, first: np.ndarray) -> Nest:
        """Takes the newest observations and returns the stacks that end with them.

        Args:
          observation: `[N, ...]` single frames.
          first: `[N]` bool, whether an episode begins with this observation.

        Returns:
          A new nest, `[N, ..., k]` for images.
        """
        if self._stacks is None:
            self._stacks = tree.map_structure(self._empty, observation)
        self._stacks = tree.map_structure(
            lambda stacks, newest: _push(stacks, newest, first), self._stacks, observation
        )
        return self._stacks

    def _empty(self, leaf: np.ndarray) -> np.ndarray:
        if not is_image(leaf.ndim - 1):
            return np.zeros_like(leaf)
        frame = leaf.shape if leaf.ndim == 4 else (*leaf.shape, 1)
        return np.zeros((*frame[:-1], frame[-1] * self._num_frames), leaf.dtype)


def _push(stacks: np.ndarray, newest: np.ndarray, first: np.ndarray) -> np.ndarray:
    """`[N, H, W, C * k]` without its oldest frame, and with the newest one at its end."""
    if not is_image(newest.ndim - 1):
        return np.array(newest)
    frames = newest if newest.ndim == 4 else newest[..., np.newaxis]
    if first.any():
        stacks = stacks.copy()
        stacks[first] = 0
    channels = frames.shape[-1]
    pushed = np.empty_like(stacks)
    # One shift of all bytes: to copy each pixel's by itself takes twenty times as long.
    pushed.reshape(-1)[:-channels] = stacks.reshape(-1)[channels:]
    pushed[..., -channels:] = frames
    return pushed


def stacked(batch: Batch) -> Batch:
    """The batch, its images' single frames joined to stacks of k, `[T + 1, B, H, W, C * k]`.

    Frames travel once, and a learner's device joins them: `[k + T, B, H, W]` or `[..., C]`, from
    the k - 1 before the first row on. Those are zero where they are not of the first row's episode.
    A batch whose images are stacks already stays as it is.
    """
    observation = tree.map_structure(
        lambda leaf: _stacks(leaf, batch.valid, batch.reset), batch.inputs.observation
    )
    return batch._replace(inputs=batch.inputs._replace(observation=observation))


def _stacks(frames: tf.Tensor, valid: tf.Tensor, first: tf.Tensor) -> tf.Tensor:
    """The stacks `[T + 1, B, H, W, C * k]` of an image, and what is none as it is.

    The frame `a` rows before row t is of its episode if none of rows t - a + 1, ..., t begins one.

    Args:
      frames: `[k + T, B, H, W]` or `[..., C]`.
      valid: `[T + 1, B]` bool, rows that have a stack at all.
      first: `[T + 1, B]` bool, rows that begin an episode.
    """
    num_rows, num_frames = valid.shape[0], frames.shape[0] - valid.shape[0] + 1
    if not is_image(frames.shape.rank - 2) or (num_frames == 1 and frames.shape.rank == 5):
        return frames
    shown, newest_first = valid, []
    for age in range(num_frames):
        newest_first.append((frames[num_frames - 1 - age :][:num_rows], shown))
        begins = tf.pad(first[: num_rows - age], [[age, 0], [0, 0]])
        shown = tf.logical_and(shown, tf.logical_not(begins))
    parts, masks = zip(*newest_first[::-1], strict=True)
    channels = frames.shape[4] if frames.shape.rank == 5 else 1
    shape = [*parts[0].shape[:4], channels * num_frames]
    if num_frames == 4 and channels == 1 and frames.dtype == tf.uint8:
        return tf.ensure_shape(tf.bitcast(_as_words(parts, masks), tf.uint8), shape)
    pixels = tf.stack(
        [
            tf.reshape(_masked(part, mask), [-1, channels])
            for part, mask in zip(parts, masks, strict=True)
        ]
    )
    # One flat [k, M] -> [M, k] transposition is several times faster than tf.stack(axis=-1).
    return tf.reshape(tf.transpose(pixels, [1, 0, 2]), shape)


def _masked(part: tf.Tensor, shown: tf.Tensor) -> tf.Tensor:
    axes = part.shape.rank - shown.shape.rank
    return tf.where(tf.reshape(shown, [*shown.shape, *[1] * axes]), part, tf.zeros([], part.dtype))


@tf.function(jit_compile=True, autograph=False)
def _as_words(parts: Sequence[tf.Tensor], masks: Sequence[tf.Tensor]) -> tf.Tensor:
    """Joins the bytes of four images, the first one's as the lowest: uint32 `[T + 1, B, H, W]`.

    One compiled pass writes a stack of four frames as one word; to transpose its bytes takes five
    times as long.
    """
    words = [
        tf.bitwise.left_shift(
            tf.cast(_masked(part, shown), tf.uint32), tf.constant(8 * k, tf.uint32)
        )
        for k, (part, shown) in enumerate(zip(parts, masks, strict=True))
    ]
    return functools.reduce(tf.bitwise.bitwise_or, words)
