"""Instructions: words are read one after the other, and each text once."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from agents.networks.language import Language
from tests.observations import LONGEST, NUM_WORDS, random_observation

WRAPS = pytest.mark.parametrize(
    "wrap", [tf.function, tf.function(jit_compile=True)], ids=["traced", "compiled"]
)


def _language() -> Language:
    tf.random.set_seed(0)
    return Language(NUM_WORDS)


def _instructions(num_rows: int = 30) -> np.ndarray:
    return random_observation(np.random.default_rng(0), num_rows)["instruction"]


def _naive(language: Language, instruction: np.ndarray) -> tf.Tensor:
    """One word after the other, each instruction by itself."""
    rows = []
    for words in instruction:
        state = language._lstm.initial_state(1)
        for word in words[words > 0]:
            embedded = tf.one_hot([word - 1], NUM_WORDS) @ language._embeddings
            _, state = language._lstm.step(embedded, state)
        rows.append(state.hidden[0])
    return tf.stack(rows)


@WRAPS
def test_equals_the_naive_twin(wrap: Callable) -> None:
    language, instruction = _language(), _instructions()
    lengths = (instruction > 0).sum(axis=1)
    assert set(lengths) == set(range(LONGEST + 1))
    assert len(np.unique(instruction, axis=0)) < len(instruction)  # at least those without words
    assert {1, NUM_WORDS} <= set(instruction.flatten())
    code = wrap(language)(tf.constant(instruction))
    assert code.shape == (30, 64)
    np.testing.assert_allclose(code, _naive(language, instruction), atol=1e-6)


def test_the_lstm_sees_few_numbers_of_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    """The number is a power of two, or all rows: a step is compiled for each number."""
    language, seen = _language(), []
    unroll = language._lstm.unroll

    def recorded(words: tf.Tensor, *args: Any, **options: Any) -> Any:
        seen.append(words.shape[1])
        return unroll(words, *args, **options)

    monkeypatch.setattr(language._lstm, "unroll", recorded)
    for distinct in range(1, 12):
        instruction = np.zeros([11, LONGEST], np.int32)
        instruction[:distinct, 0] = 1 + np.arange(distinct)
        instruction[distinct:] = instruction[0]
        code = language(tf.constant(instruction))
        np.testing.assert_allclose(code, _naive(language, instruction), atol=1e-6)
    assert seen == [1, 2, 4, 4, 8, 8, 8, 8, 11, 11, 11]


def test_sizes_are_those_of_the_paper() -> None:
    """Hessel et al. 2018, Table 7."""
    language = _language()
    language(tf.zeros([1, LONGEST], tf.int32))
    shapes = sorted(v.shape.as_list() for v in language.trainable_variables)
    assert shapes == [[NUM_WORDS, 20], [20, 4 * 64], [64, 4 * 64], [4 * 64]]


@WRAPS
def test_gradients_are_dense_and_those_of_the_naive_twin(wrap: Callable) -> None:
    """Equal instructions are read once, but each row's gradient counts."""
    language, instruction = _language(), _instructions()[:12]
    instruction[3] = instruction[7] = instruction[1]
    assert (instruction[1] > 0).any()
    weight = np.random.default_rng(1).normal(size=(12, 64)).astype(np.float32)

    def gradients(code: Callable[[], Any]) -> list[Any]:
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(weight * code())
        return tape.gradient(loss, language.trainable_variables)

    language(instruction)
    actual = wrap(lambda: gradients(lambda: language(tf.constant(instruction))))()

    expected = gradients(lambda: _naive(language, instruction))
    for x, y in zip(actual, expected, strict=True):
        assert isinstance(x, tf.Tensor)  # no IndexedSlices, whose norm would be another
        np.testing.assert_allclose(x, y, atol=1e-5)
