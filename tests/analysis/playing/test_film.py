"""A film shows what is decided, and what the agent thought; every browser plays it."""

import itertools
import os
import pathlib
from collections.abc import Iterator
from typing import Any

import av
import numpy as np
import pytest

from agents.environment_loop import VectorEnvironmentLoop
from analysis.playing import evaluation, film
from analysis.playing.film import Captions
from environments.copies.dead_simulators import CannotPlayError
from tests.run_folder import saved_runs

MOVES = {"left": -1, "stay": 0, "right": 1}
PICTURE = np.random.default_rng(0).integers(256, size=(210, 160, 3)).astype(np.uint8)
FRAME = film.Frame(PICTURE, 12, 3.0, "up right fire", 1.0, {"Q": 0.25})


def _shoot(folder: pathlib.Path, agent: str, **how: Any) -> list[film.Frame]:
    player = evaluation.load(saved_runs.save(folder, agent), agent, **how)
    speed, frames = film.shoot(player, "catch")
    assert speed == 4
    return list(frames)


def _paddle(frame: film.Frame) -> int:
    (column,) = np.flatnonzero(frame.picture[-1, :, 0])
    return int(column)


@pytest.fixture(scope="module")
def frames(tmp_path_factory: pytest.TempPathFactory) -> list[film.Frame]:
    """R2D2, which acts at random."""
    return _shoot(tmp_path_factory.mktemp("runs") / "run", "r2d2", epsilon=1.0, seed=2)


def test_an_episode_has_a_frame_for_each_step_and_a_last_one(frames: list[film.Frame]) -> None:
    assert [frame.step for frame in frames] == list(range(10))
    assert all(frame.picture.shape == (10, 5, 3) for frame in frames)
    assert [frame.score for frame in frames[:-1]] == [0.0] * 9
    caught = frames[-1].picture[-1].any(axis=-1).sum() == 1  # the ball is where the paddle is
    assert frames[-1].score == (1.0 if caught else -1.0)
    assert frames[-1].action == ""


def test_a_frame_shows_the_action_that_leads_to_the_next(frames: list[film.Frame]) -> None:
    actions = [frame.action for frame in frames[:-1]]
    assert len(set(actions)) > 1
    for before, after in itertools.pairwise(frames[:-1]):
        moved = _paddle(before) + MOVES[before.action]
        assert _paddle(after) == np.clip(moved, 0, 4)


def test_r2d2_says_q_and_that_it_is_sure(tmp_path: pathlib.Path) -> None:
    greedy = _shoot(tmp_path / "run", "r2d2")
    assert all(set(frame.estimates) == {"Q"} for frame in greedy)
    assert len({frame.estimates["Q"] for frame in greedy[:-1]}) > 3
    assert all(frame.probability == 1.0 for frame in greedy)


def test_impala_says_v_and_how_probable_its_action_was(tmp_path: pathlib.Path) -> None:
    sampled = _shoot(tmp_path / "run", "impala")
    assert all(set(frame.estimates) == {"V"} for frame in sampled)
    assert all(0 < frame.probability < 1 for frame in sampled[:-1])


def test_an_episode_that_is_lost_is_no_film(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual = VectorEnvironmentLoop.step

    def step(loop: VectorEnvironmentLoop) -> Any:
        loop.lost += 1
        return usual(loop)

    monkeypatch.setattr(VectorEnvironmentLoop, "step", step)
    with pytest.raises(CannotPlayError, match="episode of catch that was filmed was lost"):
        _shoot(tmp_path / "run", "r2d2")


def test_a_random_action_is_as_probable_as_it_is(frames: list[film.Frame]) -> None:
    assert [frame.probability for frame in frames[:-1]] == pytest.approx([1 / 3] * 9)


def _beside(image: np.ndarray) -> np.ndarray:
    return image[:, -film.PANEL_WIDTH :]


def test_the_picture_is_enlarged_and_kept_apart() -> None:
    image = Captions("atari:pong").draw(FRAME)
    assert image.shape == (3 * 210, 3 * 160 + film.PANEL_WIDTH, 3)
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
    assert image.shape == (expected[0], expected[1] + film.PANEL_WIDTH, 3)
    bright = (image[:, : min(shape[1], 5)] == 255).all(axis=(1, 2))
    above = int(np.argmax(bright))
    assert above == (expected[0] - bright.sum()) // 2
    assert expected[0] >= film.MIN_HEIGHT


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
    assert (_beside(plain) != _beside(other)).any()
    assert (_beside(plain) != _beside(Captions("other").draw(FRAME))).any()


def test_long_words_stay_inside() -> None:
    image = Captions("task").draw(FRAME._replace(action="look left 60 forward " * 3))
    margin = image[:, -film._MARGIN :]
    assert (margin == margin[0, 0]).all()


def test_the_trace_shows_how_the_estimate_has_changed() -> None:
    caption = Captions("task")
    for value in (0.0, 1.0, 0.5):
        image = caption.draw(FRAME._replace(estimates={"Q": value}))
    blue = (_beside(image) == film._BLUE).all(axis=-1)
    rows, columns = np.nonzero(blue)
    height = rows.max() - rows.min()
    assert abs(height - film._TRACE_HEIGHT) <= 2
    ends = rows[columns == columns.max()]
    assert abs(ends.mean() - (rows.max() + rows.min()) / 2) <= 3  # half-way between 0 and 1
    assert (
        not (_beside(Captions("task").draw(FRAME._replace(estimates={}))) == film._BLUE)
        .all(axis=-1)
        .any()
    )


def _striped(count: int) -> Iterator[np.ndarray]:
    for i in range(count):
        frame = np.zeros((64, 96, 3), np.uint8)
        frame[:, : 16 * (i + 1), i % 3] = 200
        yield frame


def test_a_film_shows_every_frame_at_its_time(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "videos" / "film.mp4"
    film.write(path, _striped(6), 15)
    with av.open(str(path)) as container:
        (stream,) = container.streams.video
        assert (stream.codec_context.name, stream.codec_context.pix_fmt) == ("h264", "yuv420p")
        decoded = list(container.decode(stream))
    assert [frame.time for frame in decoded] == pytest.approx([i / 15 for i in range(6)])
    for frame, expected in zip(decoded, _striped(6), strict=True):
        assert np.abs(frame.to_ndarray(format="rgb24") - expected.astype(int)).mean() < 5


def test_a_browser_need_not_have_all_of_it_to_begin(tmp_path: pathlib.Path) -> None:
    film.write(tmp_path / "film.mp4", _striped(6), 15)
    data = (tmp_path / "film.mp4").read_bytes()
    assert data.index(b"moov") < data.index(b"mdat")


def test_a_film_that_is_cut_short_is_not_there(tmp_path: pathlib.Path) -> None:
    def breaks() -> Iterator[np.ndarray]:
        yield from _striped(2)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        film.write(tmp_path / "film.mp4", breaks(), 15)
    assert list(tmp_path.iterdir()) == []


def test_two_processes_that_film_the_same_at_once_write_no_film_together(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "film.mp4"

    def meanwhile() -> Iterator[np.ndarray]:
        yield from _striped(2)
        with monkeypatch.context() as another:
            another.setattr(os, "getpid", lambda: 1)
            film.write(path, _striped(3), 15)
        yield from _striped(4)

    film.write(path, meanwhile(), 15)
    with av.open(str(path)) as container:
        assert len(list(container.decode(video=0))) == 6
    assert list(tmp_path.iterdir()) == [path]
