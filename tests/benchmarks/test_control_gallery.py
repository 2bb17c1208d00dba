"""A film and a picture of each task of continuous control."""

import pathlib

import av
import numpy as np
import pytest

from benchmarks import control_gallery
from environments.control import tasks as control_tasks
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
    steps, picture = control_gallery.play("control:cartpole/swingup", film)
    assert steps == 1000
    assert (picture.dtype, picture.ndim) == (np.uint8, 3)
    with av.open(str(film)) as container:
        assert sum(1 for _ in container.decode(video=0)) == 5


def test_a_picture_of_each(tmp_path: pathlib.Path) -> None:
    picture = np.random.default_rng(0).integers(0, 256, (48, 64, 3), np.uint8)
    control_gallery.draw({f"control:a/{i}": picture for i in range(9)}, tmp_path / "all.png")
    assert (tmp_path / "all.png").stat().st_size > 5_000
