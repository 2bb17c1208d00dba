"""Observations with words, and the network that reads them.

An observation is one array, or, where the environment may say something, an image and an
instruction: the number of each word in a vocabulary, then zeros up to the longest instruction.

    image [B, H, W, C]  --torso--------------------------------------+
                                                                     +--> [B, D + 64]
    instruction [B, L]  --embeddings, LSTM: the output after the  ---+
                          last word, zeros where there is none

IMPALA's network for DeepMind Lab (Espeholt et al. 2018, Section 5 and Figure 4) in the sizes of
Hessel et al. 2018, Table 7; R2D2 has the same (Kapturowski et al. 2019, Appendix).
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import sonnet as snt
import tensorflow as tf
from acme import specs

from agents.networks.core import LSTM
from replay.structures import Nest

IMAGE, INSTRUCTION = "image", "instruction"

EMBEDDING_SIZE = 20
LSTM_SIZE = 64


class Language(snt.Module):
    """Embeds the words of an instruction and reads them in order.

    Args:
      num_words: of the vocabulary: words are numbered from 1 to this.
    """

    def __init__(self, num_words: int) -> None:
        super().__init__()
        # Of unit variance, for the LSTM's initial weights keep the variance of what enters it.
        embeddings = snt.initializers.TruncatedNormal()([num_words, EMBEDDING_SIZE], tf.float32)
        self._embeddings = tf.Variable(embeddings, name="embeddings")
        self._lstm = LSTM(LSTM_SIZE)

    def __call__(self, instruction: tf.Tensor) -> tf.Tensor:
        """`[B, L]` -> `[B, 64]`."""
        # An instruction stays for many steps, and most levels have none: each is read once.
        distinct, row = tf.raw_ops.UniqueV2(x=instruction, axis=[0])
        distinct = tf.transpose(tf.ensure_shape(distinct, [None, instruction.shape[1]]))  # [L, U]
        # Padding as row 0 of the table; this makes its gradient dense too, as the clipping and the
        # optimizers want it.
        table = tf.pad(self._embeddings, [[1, 0], [0, 0]])
        words = tf.gather(table, distinct)  # [L, U, 20]
        state = self._lstm.initial_state(tf.shape(distinct)[1])
        is_word = distinct > 0
        _, state = self._lstm.unroll(words, state, reset=tf.zeros_like(is_word), valid=is_word)
        return tf.gather(state.hidden, row)  # [B, 64]


class ImageAndInstruction(snt.Module):
    """A torso for observations with words.

    Args:
      torso: image `[B, H, W, C]`, prepared or not -> `[B, D]`.
      language: instruction `[B, L]` -> `[B, 64]`.
    """

    def __init__(self, torso: snt.Module, language: Language) -> None:
        super().__init__()
        self._torso = torso
        self._language = language

    def prepare(self, observation: Mapping[str, tf.Tensor]) -> Mapping[str, Nest]:
        """What `__call__` does before there are parameters, of the image."""
        return {**observation, IMAGE: self._torso.prepare(observation[IMAGE])}

    def __call__(self, observation: Mapping[str, Nest]) -> tf.Tensor:
        """-> `[B, D + 64]`."""
        seen, read = self._torso(observation[IMAGE]), self._language(observation[INSTRUCTION])
        return tf.concat([seen, tf.cast(read, seen.dtype)], axis=-1)


def with_language(torso: snt.Module, observations: Nest) -> snt.Module:
    """The torso itself, or where there are words beside the image, one that reads them too.

    Args:
      torso: for the image, or for an observation that is one array.
      observations: specs of one environment's observation.

    Raises:
      ValueError: for observations of another structure, or instructions without a vocabulary.
    """
    if isinstance(observations, specs.Array):
        return torso
    if not isinstance(observations, Mapping) or set(observations) != {IMAGE, INSTRUCTION}:
        raise ValueError(
            f"Observations must be one array, or a dict of {IMAGE!r} and {INSTRUCTION!r}, got "
            f"{observations!r}."
        )
    return ImageAndInstruction(torso, Language(_vocabulary_size(observations[INSTRUCTION])))


def image_of(observation: Nest) -> Any:
    """What there is to see of an observation, or of its specs."""
    return observation[IMAGE] if isinstance(observation, Mapping) else observation


def _vocabulary_size(instruction: specs.Array) -> int:
    is_bounded = isinstance(instruction, specs.BoundedArray)
    if not (is_bounded and instruction.dtype.kind in "iu" and len(instruction.shape) == 1):
        raise ValueError(
            f"An instruction must be a vector of whole numbers with a maximum, the last word's "
            f"number; got {instruction!r}."
        )
    return int(np.max(instruction.maximum))
