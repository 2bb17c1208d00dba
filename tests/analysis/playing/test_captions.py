"""What is written beside a picture, and where."""

import numpy as np
import pytest

from analysis.playing import captions
from analysis.playing.captions import MIN_HEIGHT, PANEL_WIDTH, Captions
from analysis.playing.film import Frame

PICTURE = np.random.default_rng(0).integers(256, size=(210, 160, 3)).astype(np.uint8)
FRAME = Frame(PICTURE, 12, 3.0, "up right fire", 1.0, {"Q": 0.25})


def _panel(image: np.ndarray) -> np.ndarray:
    return image[:, -PANEL_WIDTH:]


def test_the_picture_is_enlarged_and_kept_apart() -> None:
    image = Captions("atari:pong").draw(FRAME)
    assert image.shape == (3 * 210, 3 * 160 + PANEL_WIDTH, 3)
    np.testing.assert_array_equal(image[::3, : 3 * 160 : 3], PICTURE)
    np.testing.assert_array_equal(image[2::3, 2 : 3 * 160 : 3], PICTURE)


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        ((10, 5), (600, 300)),
        ((72, 96), (576, 768)),
        ((400, 601), (480, 602)),  # odd widths become even, low pictures get bars
        ((1, 5), (480, 800)),
        ((250, 160), (500, 320)),
        ((900, 1_000), (900, 1_000)),
    ],
)
def test_every_size_is_one_that_can_be_encoded(
    shape: tuple[int, int], expected: tuple[int, int]
) -> None:
    picture = np.full((*shape, 3), 255, np.uint8)
    image = Captions("task").draw(FRAME._replace(picture=picture))
    assert image.shape == (expected[0], expected[1] + PANEL_WIDTH, 3)
    bright = (image[:, : min(shape[1], 5)] == 255).all(axis=(1, 2))
    above = int(np.argmax(bright))
    assert above == (expected[0] - bright.sum()) // 2
    assert expected[0] >= MIN_HEIGHT


@pytest.mark.parametrize(
    "change",
    [
        {"step": 13},
        {"score": 4.0},
        {"action": "left"},
        {"action": ""},
        {"probability": 0.4},
        {"estimates": {"Q": 0.5}},
        {"estimates": {"V": 0.25}},
    ],
)
def test_everything_is_shown(change: dict[str, object]) -> None:
    plain = Captions("task").draw(FRAME)
    other = Captions("task").draw(FRAME._replace(**change))  # type: ignore[arg-type]
    assert (_panel(plain) != _panel(other)).any()
    assert (_panel(plain) != _panel(Captions("other").draw(FRAME))).any()


def test_long_words_stay_inside() -> None:
    image = Captions("task").draw(FRAME._replace(action="look left 60 forward " * 3))
    margin = image[:, -captions._MARGIN :]
    assert (margin == margin[0, 0]).all()


def test_the_trace_shows_how_the_estimate_has_changed() -> None:
    caption = Captions("task")
    for value in (0.0, 1.0, 0.5):
        image = caption.draw(FRAME._replace(estimates={"Q": value}))
    blue = (_panel(image) == captions._BLUE).all(axis=-1)
    rows, columns = np.nonzero(blue)
    height = rows.max() - rows.min()
    assert abs(height - captions._TRACE_HEIGHT) <= 2
    ends = rows[columns == columns.max()]
    assert abs(ends.mean() - (rows.max() + rows.min()) / 2) <= 3  # half-way between 0 and 1
    assert (
        not (_panel(Captions("task").draw(FRAME._replace(estimates={}))) == captions._BLUE)
        .all(axis=-1)
        .any()
    )
