"""The network that reads words.

    words [B, L]  --embeddings, LSTM: the output after the last word, zeros where there is none-->
    [B, 64]

Words are the number of each in a vocabulary, then zeros up to the longest text. IMPALA's network
for DeepMind Lab (Espeholt et al. 2018, Section 5 and Figure 4) in the sizes of Hessel et al. 2018,
Table 7; R2D2 has the same (Kapturowski et al. 2019, Appendix).
"""

import numpy as np
import sonnet as snt
import tensorflow as tf

from agents.networks.core import LSTM
from tensor_ops.xla import within_xla

EMBEDDING_SIZE = 20
LSTM_SIZE = 64

_POWERS = 2 ** np.arange(31, dtype=np.int32)


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
        if within_xla():
            return self._read(instruction)  # it has to know how many there are
        # An instruction stays for many steps, and most levels have none: each is read once.
        distinct, row = tf.raw_ops.UniqueV2(x=instruction, axis=[0])
        distinct = _padded(distinct, tf.shape(instruction)[0])
        return tf.gather(self._read(tf.ensure_shape(distinct, [None, instruction.shape[1]])), row)

    def _read(self, texts: tf.Tensor) -> tf.Tensor:
        """`[U, L]` -> `[U, 64]`."""
        texts = tf.transpose(texts)  # [L, U]
        # Padding as row 0 of the table; this makes its gradient dense too, as the clipping and the
        # optimizers want it.
        table = tf.pad(self._embeddings, [[1, 0], [0, 0]])
        words = tf.gather(table, texts)  # [L, U, 20]
        state = self._lstm.initial_state(tf.shape(texts)[1])
        is_word = texts > 0
        _, state = self._lstm.unroll(words, state, reset=tf.zeros_like(is_word), valid=is_word)
        return state.hidden


def _padded(distinct: tf.Tensor, most: tf.Tensor) -> tf.Tensor:
    """Adds texts without words, up to a power of two or to `most`.

    XLA compiles the LSTM's step anew, a quarter of a second, for each number of texts: there are
    few powers of two.
    """
    number = tf.shape(distinct)[0]
    enough = tf.gather(_POWERS, tf.searchsorted(_POWERS, [number]))[0]
    return tf.pad(distinct, [[0, tf.minimum(enough, most) - number], [0, 0]])
