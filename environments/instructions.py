"""From an instruction in words to the fixed-size vector of word ids that a network embeds."""

import functools
import zlib

import numpy as np

MAX_WORDS = 16
"""The words of an instruction that are kept; none of the levels of DMLab-30 says more."""

MAX_WORDS_OF_TEXT = 40
"""Those of a text anywhere else: the longest missions of BabyAI have 33."""

NUM_BUCKETS = 1000

NUM_WORDS = 1 + NUM_BUCKETS
"""The size of the vocabulary: the padding and what words are hashed to."""


@functools.lru_cache(maxsize=1024)
def word_ids(instruction: str, max_words: int = MAX_WORDS) -> np.ndarray:
    """Hashes each word; which words there are need not be known.

    Args:
      instruction: words between spaces.
      max_words: of the result; any word after so many is dropped.

    Returns:
      int32 [max_words], read-only: an id in [1, NUM_WORDS) for each word, the same in every
      process and on every machine, then zeros.
    """
    ids = np.zeros(max_words, np.int32)
    for place, word in enumerate(instruction.split()[:max_words]):
        ids[place] = 1 + zlib.crc32(word.encode()) % NUM_BUCKETS
    ids.setflags(write=False)
    return ids
