"""The pictures of every task of continuous control."""

import pathlib

import av
import numpy as np
import pytest

from environments.control import tasks as control_tasks
from studies import control_gallery
from studies.control_gallery import Played
from tests.environments.control import renderers


def test_all_that_the_benchmark_has() -> None:
    names = list(control_gallery.names())
    assert names[:28] == [f"control:{task}" for task in control_tasks.BENCHMARKING]
    assert names[28:] in ([], [f"rwrl:{task}" for task in control_tasks.RWRL])


def test_an_episode_is_played_to_its_end_and_filmed(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    renderers.choose(monkeypatch)
    monkeypatch.setattr(control_gallery, "EVERY", 200)
    film = tmp_path / "film.mp4"
    played = control_gallery.play("control:cartpole/swingup", film)
    assert (played.observed, played.acted, played.steps) == (5, 1, 1000)
    assert 0 < played.episode_return < 1000
    assert (played.picture.dtype, played.picture.ndim) == (np.uint8, 3)
    with av.open(str(film)) as container:
        assert sum(1 for _ in container.decode(video=0)) == 5


def test_a_picture_and_a_row_of_each(tmp_path: pathlib.Path) -> None:
    picture = np.random.default_rng(0).integers(0, 256, (48, 64, 3), np.uint8)
    played = [Played(f"control:a/{i}", 5, 1, 1000, 1.25 * i, 0.5, picture) for i in range(9)]
    control_gallery.draw(played, tmp_path / "all.png")
    assert (tmp_path / "all.png").stat().st_size > 5_000
    _, _, *rows = control_gallery.table(played).splitlines()
    assert (rows[1], len(rows)) == ("| control:a/1 | 5 | 1 | 1,000 | 1.2 | 0.5 |", 9)
