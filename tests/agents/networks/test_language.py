"""Instructions: what is read, where it goes, and which observations are refused."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import sonnet as snt
import tensorflow as tf
from acme import specs

from agents.networks.core import LSTM
from agents.networks.language import ImageAndInstruction, Language, image_of, with_language
from agents.networks.torsos import make_torso
from tests.instructions import LONGEST, NUM_WORDS, random_observation, spec_with_words


def _language() -> Language:
    tf.random.set_seed(0)
    return Language(NUM_WORDS)


def _instructions(num_rows: int = 30) -> np.ndarray:
    return random_observation(np.random.default_rng(0), num_rows)["instruction"]


def _naive(language: Language, instruction: np.ndarray) -> np.ndarray:
    """One word after the other, each instruction by itself."""
    rows = []
    for words in instruction:
        state = language._lstm.initial_state(1)
        for word in words[words > 0]:
            embedded = language._embeddings[word - 1][tf.newaxis]
            _, state = language._lstm.step(embedded, state)
        rows.append(state.hidden[0])
    return np.stack(rows)


@pytest.mark.parametrize("wrap", [lambda f: f, tf.function], ids=["eager", "traced"])
def test_equals_the_naive_twin(wrap: Callable) -> None:
    language, instruction = _language(), _instructions()
    lengths = (instruction > 0).sum(axis=1)
    assert set(lengths) == set(range(LONGEST + 1))
    assert len(np.unique(instruction, axis=0)) < len(instruction)  # at least those without words
    assert {1, NUM_WORDS} <= set(instruction.flatten())
    code = wrap(language)(tf.constant(instruction))
    assert code.shape == (30, 64)
    np.testing.assert_allclose(code, _naive(language, instruction), atol=1e-6)


def test_without_words_the_code_is_zero() -> None:
    code = _language()(tf.zeros([3, LONGEST], tf.int32))
    np.testing.assert_array_equal(code, np.zeros([3, 64]))


def test_the_order_of_the_words_counts() -> None:
    there, back = _language()(tf.constant([[3, 5, 7, 0], [7, 5, 3, 0]]))
    assert np.abs(there - back).max() > 1e-2


def test_sizes_are_those_of_the_paper() -> None:
    """Hessel et al. 2018, Table 7."""
    language = _language()
    language(tf.zeros([1, LONGEST], tf.int32))
    shapes = sorted(v.shape.as_list() for v in language.trainable_variables)
    assert shapes == [[NUM_WORDS, 20], [20, 4 * 64], [64, 4 * 64], [4 * 64]]


@pytest.mark.parametrize("wrap", [lambda f: f, tf.function], ids=["eager", "traced"])
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

    def one_by_one() -> tf.Tensor:
        rows = []
        for words in instruction:
            state = language._lstm.initial_state(1)
            for word in words[words > 0]:
                embedded = tf.one_hot([word - 1], NUM_WORDS) @ language._embeddings
                _, state = language._lstm.step(embedded, state)
            rows.append(state.hidden[0])
        return tf.stack(rows)

    for x, y in zip(actual, gradients(one_by_one), strict=True):
        assert isinstance(x, tf.Tensor)  # no IndexedSlices, whose norm would be another
        np.testing.assert_allclose(x, y, atol=1e-5)


def test_the_words_go_past_the_torso() -> None:
    """Its outputs stay what they are, and the code stands behind them."""
    torso = make_torso("shallow")
    network = with_language(torso, spec_with_words().observations)
    assert isinstance(network, ImageAndInstruction)
    observation = random_observation(np.random.default_rng(0), 5)
    x = network(observation)
    assert x.shape == (5, 256 + 64)
    np.testing.assert_allclose(x[:, :256], torso(observation["image"]), atol=1e-6)
    code = network._language(observation["instruction"])
    np.testing.assert_allclose(x[:, 256:], code, atol=1e-6)


@pytest.mark.parametrize(("kind", "millions"), [("shallow", 1.2), ("resnet", 1.6)])
def test_impala_sizes_with_a_vocabulary_of_a_thousand_words(kind: str, millions: float) -> None:
    """Espeholt et al. 2018, Figure 4; nine actions."""
    torso, core = ImageAndInstruction(make_torso(kind), Language(1_000)), LSTM(256)
    observation = {
        "image": np.zeros((1, 72, 96, 3), np.uint8),
        "instruction": np.zeros((1, 16), np.int32),
    }
    core.step(tf.pad(torso(observation), [[0, 0], [0, 9 + 1]]), core.initial_state(1))
    variables = [*torso.trainable_variables, *core.trainable_variables]
    assert round(sum(int(tf.size(v)) for v in variables) / 1e6, 1) == millions


def test_one_array_needs_no_language() -> None:
    torso = make_torso("mlp", (3,))
    assert with_language(torso, specs.Array((4,), np.float32)) is torso


def test_what_there_is_to_see() -> None:
    assert image_of({"image": 1, "instruction": 2}) == 1
    assert image_of(3) == 3


def _with_instruction(instruction: specs.Array) -> dict[str, specs.Array]:
    return {**spec_with_words().observations, "instruction": instruction}


@pytest.mark.parametrize(
    ("observations", "sentence"),
    [
        (
            {"image": specs.Array((4,), np.uint8)},
            r"'image' and 'instruction', got \{'image': Array",
        ),
        (_with_instruction(specs.Array((4,), np.int32)) | {"more": None}, "got .*'more': None"),
        ((specs.Array((4,), np.uint8),), r"one array, or a dict .* got \(Array"),
        (
            _with_instruction(specs.Array((4,), np.int32)),
            r"with a maximum.*; got Array\(shape=\(4,",
        ),
        (_with_instruction(specs.BoundedArray((), np.int32, 0, 9)), "a vector of whole numbers"),
        (_with_instruction(specs.BoundedArray((4,), np.float32, 0, 9)), "vector of whole numbers"),
    ],
)
def test_other_observations_are_refused(observations: Any, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        with_language(snt.Linear(1), observations)


def test_the_vocabulary_is_the_largest_number_of_any_place() -> None:
    instruction = specs.BoundedArray((2,), np.int32, [0, 0], [4, 9])
    network = with_language(snt.Linear(1), _with_instruction(instruction))
    assert isinstance(network, ImageAndInstruction)
    (embeddings,) = [v for v in network.variables if v.shape.as_list()[-1] == 20]
    assert embeddings.shape == (9, 20)
