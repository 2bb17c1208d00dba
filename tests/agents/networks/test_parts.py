"""Observations of several parts: each has a torso, and some are refused."""

from collections.abc import Mapping

import numpy as np
import pytest
import tensorflow as tf
from acme import specs

from agents.networks.core import LSTM
from agents.networks.parts import Words, image_of, torso_of
from agents.networks.torsos import MLPTorso

WORDS = specs.BoundedArray((4,), np.int32, 0, 9)
SEEN: dict[str, specs.Array] = {
    "left": specs.BoundedArray((20, 24), np.uint8, 0, 255),
    "right": specs.Array((20, 20, 2), np.float32),
    "first": WORDS,
    "joints": specs.Array((3,), np.float32),
    "second": specs.BoundedArray((2,), np.int32, 0, 11),
}


def _zeros(observations: Mapping[str, specs.Array], batch: int = 2) -> dict[str, np.ndarray]:
    return {name: np.zeros((batch, *x.shape), x.dtype) for name, x in observations.items()}


def _stacked(observation: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The observation as a frame stack returns it: every image has a last axis."""
    return {k: x[..., np.newaxis] if x.ndim == 3 else x for k, x in observation.items()}


@pytest.mark.parametrize(("kind", "millions"), [("shallow", 1.2), ("resnet", 1.6)])
def test_impala_sizes_with_a_vocabulary_of_a_thousand_words(kind: str, millions: float) -> None:
    """Espeholt et al. 2018, Figure 4; nine actions."""
    observations = {
        "image": specs.Array((72, 96, 3), np.uint8),
        "instruction": specs.BoundedArray((16,), np.int32, 0, 1_000),
    }
    torso, core = torso_of(observations, kind, ()), LSTM(256)
    core.step(tf.pad(torso(_zeros(observations, 1)), [[0, 0], [0, 9 + 1]]), core.initial_state(1))
    variables = [*torso.trainable_variables, *core.trainable_variables]
    assert round(sum(int(tf.size(v)) for v in variables) / 1e6, 1) == millions


def test_every_part_has_its_say() -> None:
    """A change in any of them alone changes its own part of the vector, and bytes are fractions."""
    tf.random.set_seed(0)
    torso = torso_of(SEEN, "mlp", (8,))
    zeros = _stacked(_zeros(SEEN))
    nothing = torso(zeros)
    assert nothing.shape == (2, 3 * 8 + 2 * 64)
    places = dict(left=0, right=8, joints=16, first=24, second=88, end=152)
    ends = list(places.values())[1:]
    for (name, begin), end in zip(places.items(), ends, strict=False):
        changed = torso({**zeros, name: np.full_like(zeros[name], 5)})
        moved = np.flatnonzero(np.abs(changed - nothing).max(axis=0) > 1e-6)
        assert len(moved)
        assert begin <= moved.min() <= moved.max() < end
    bytes_, fractions = np.uint8(51), np.float32(0.2)
    left = tf.fill(zeros["left"].shape, bytes_), tf.fill(zeros["left"].shape, fractions)
    x, y = (torso({**zeros, "left": image}) for image in left)
    np.testing.assert_allclose(x, y, rtol=1e-5)


def test_the_named_torso_is_the_images_or_else_the_vectors() -> None:
    beside = torso_of({k: SEEN[k] for k in ("left", "joints")}, "shallow", (8,))
    assert beside(_stacked(_zeros({k: SEEN[k] for k in ("left", "joints")}))).shape == (2, 256 + 8)
    vector = {"joints": SEEN["joints"], "said": WORDS}
    torso = torso_of(vector, "mlp", (8, 4))
    assert torso(_zeros(vector)).shape == (2, 4 + 64)
    with pytest.raises(ValueError, match=r"needs images .* got observations of shape"):
        torso_of(vector, "shallow", ())(_zeros(vector))


def test_one_array_is_given_to_its_torso_alone() -> None:
    assert isinstance(torso_of(specs.Array((4,), np.float32), "mlp", (3,)), MLPTorso)
    words = torso_of(WORDS, "mlp", (3,))
    assert isinstance(words, Words)
    ids = np.array([[3, 1, 0, 0]], np.int32)
    assert words(ids).shape == (1, 64)


def test_what_there_is_to_see() -> None:
    assert image_of({"image": 1, "instruction": 2}) == 1
    assert image_of(3) == 3
    with pytest.raises(ValueError, match=r"needs a part called 'image', got left, right."):
        image_of({"left": 1, "right": 2})


def test_several_texts_without_an_array_are_refused() -> None:
    with pytest.raises(ValueError, match=r"an array, got first, second alone\."):
        torso_of({"first": WORDS, "second": WORDS}, "mlp", (3,))
