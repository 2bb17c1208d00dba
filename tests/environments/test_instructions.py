"""Words become ids that every process agrees on."""

import subprocess
import sys

import numpy as np
import pytest
from environments.copies.conversion import MAX_WORDS, NUM_WORDS, word_ids

from environments.copies import conversion


def test_known_ids() -> None:
    """Fixed numbers: a checkpoint's embeddings belong to them."""
    assert word_ids("red balloon red").tolist() == [456, 473, 456] + [0] * (MAX_WORDS - 3)


def test_another_process_agrees() -> None:
    code = f"from {conversion.__name__} import word_ids; print(word_ids('Get the red balloon'))"
    said = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout
    assert said.strip() == str(word_ids("Get the red balloon"))


@pytest.mark.parametrize("nothing", ["", " ", "\n"])
def test_no_words_are_all_zeros(nothing: str) -> None:
    ids = word_ids(nothing)
    assert (ids.shape, ids.dtype) == ((MAX_WORDS,), np.int32)
    assert not ids.any()


def test_long_instructions_lose_their_end() -> None:
    words = [f"word{i}" for i in range(MAX_WORDS + 5)]
    full = word_ids(" ".join(words[:MAX_WORDS]))
    assert (full > 0).all()
    np.testing.assert_array_equal(word_ids(" ".join(words)), full)


def test_every_id_is_a_word_of_the_vocabulary_and_none_is_the_padding() -> None:
    ids = {int(word_ids(f"w{i}")[0]) for i in range(20_000)}
    assert ids == set(range(1, NUM_WORDS))


def test_the_ids_cannot_be_written_to() -> None:
    with pytest.raises(ValueError, match="read-only"):
        word_ids("a shared array")[0] = 7
