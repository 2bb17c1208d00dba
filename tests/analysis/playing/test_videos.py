"""Films: whole or not there, in the one format that every browser plays."""

import pathlib
from collections.abc import Iterator

import av
import numpy as np
import pytest

from analysis.playing import videos


def _frames(count: int) -> Iterator[np.ndarray]:
    for i in range(count):
        frame = np.zeros((64, 96, 3), np.uint8)
        frame[:, : 16 * (i + 1), i % 3] = 200
        yield frame


def test_a_film_shows_every_frame_at_its_time(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "videos" / "film.mp4"
    videos.write(path, _frames(6), 15)
    with av.open(str(path)) as container:
        (stream,) = container.streams.video
        assert (stream.codec_context.name, stream.codec_context.pix_fmt) == ("h264", "yuv420p")
        decoded = list(container.decode(stream))
    assert [frame.time for frame in decoded] == pytest.approx([i / 15 for i in range(6)])
    for frame, expected in zip(decoded, _frames(6), strict=True):
        assert np.abs(frame.to_ndarray(format="rgb24") - expected.astype(int)).mean() < 5


def test_a_browser_need_not_have_all_of_it_to_begin(tmp_path: pathlib.Path) -> None:
    videos.write(tmp_path / "film.mp4", _frames(6), 15)
    data = (tmp_path / "film.mp4").read_bytes()
    assert data.index(b"moov") < data.index(b"mdat")


def test_a_film_that_is_cut_short_is_not_there(tmp_path: pathlib.Path) -> None:
    def breaks() -> Iterator[np.ndarray]:
        yield from _frames(2)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        videos.write(tmp_path / "film.mp4", breaks(), 15)
    assert not (tmp_path / "film.mp4").exists()
