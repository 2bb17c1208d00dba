"""Frame stacking, the same for the actor (numpy, by step) and the learner (TensorFlow, by batch).

Frames are stored once. A network input holds the last k frames of its episode, oldest first, on the
last axis; a frame older than the episode's first one is zero:

    row         0      1       2         3
    step_type   FIRST  MID     LAST      FIRST
    stack, k=3  0 0 a  0 a b   a b c     0 0 d

An observation leaf of two axes `[H, W]` becomes `[H, W, k]` and one of three `[H, W, C]` becomes
`[H, W, C * k]`; anything else, a vector or a number, has no frames and stays as it is.
"""

import numpy as np
import tensorflow as tf
import tree

from replay.structures import Nest


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


def frame_exists(first: tf.Tensor, num_frames: int) -> tf.Tensor:
    """Which frames of each row's stack belong to the row's own episode.

    The frame `a` rows before row t does if none of the rows t - a + 1, ..., t begins an episode.

    Args:
      first: `[k - 1 + T, B]` bool; the first k - 1 rows are only context.
      num_frames: k.

    Returns:
      `[k, T, B]` bool, oldest frame first.
    """
    num_rows = tf.shape(first)[0] - (num_frames - 1)
    exists = [tf.ones_like(first[num_frames - 1 :])]  # the newest frame always does
    for age in range(1, num_frames):
        newer_is_first = first[num_frames - age :][:num_rows]
        exists.append(tf.logical_and(exists[-1], tf.logical_not(newer_is_first)))
    return tf.stack(exists[::-1])


def gather_stacks(frames: tf.Tensor, index: tf.Tensor) -> tf.Tensor:
    """Gathers frames by row number and joins k of them on the last axis.

    Args:
      frames: `[M, H, W]` or `[M, H, W, C]`.
      index: `[k, T, B]` rows of `frames`, oldest first.

    Returns:
      `[T, B, H, W, C * k]`.
    """
    num_frames = index.shape[0]
    height, width = frames.shape[1:3]
    channels = 1 if frames.shape.rank == 3 else frames.shape[3]
    if num_frames == 4 and channels == 1 and frames.dtype == tf.uint8:
        each = [tf.reshape(tf.gather(frames, index[k]), [-1]) for k in range(4)]
        pixels = tf.bitcast(_as_words(*each), tf.uint8)  # [T * B * H * W, 4]
    else:
        stacks = tf.gather(frames, index)  # [k, T, B, H, W(, C)]
        # One flat [k, M] -> [M, k] transposition is several times faster than tf.stack(axis=-1).
        pixels = tf.reshape(stacks, [num_frames, -1, channels])
        pixels = tf.transpose(pixels, [1, 0, 2]) if num_frames > 1 else pixels
    shape = tf.concat([tf.shape(index)[1:], [height, width, channels * num_frames]], axis=0)
    return tf.ensure_shape(
        tf.reshape(pixels, shape), [*index.shape[1:], height, width, channels * num_frames]
    )


@tf.function(jit_compile=True, autograph=False)
def _as_words(*frames: tf.Tensor) -> tf.Tensor:
    """Joins the bytes of four arrays, the first one's as the lowest: uint8 `[M]` -> uint32 `[M]`.

    One compiled pass writes a stack of four frames as one word; to transpose its bytes takes five
    times as long.
    """
    words = [
        tf.bitwise.left_shift(tf.cast(frame, tf.uint32), tf.constant(8 * k, tf.uint32))
        for k, frame in enumerate(frames)
    ]
    return tf.bitwise.bitwise_or(
        tf.bitwise.bitwise_or(words[0], words[1]), tf.bitwise.bitwise_or(words[2], words[3])
    )
