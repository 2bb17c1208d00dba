"""Whenever the power is cut, what was saved last is there, and whole."""

import pathlib

import pytest

from run_folder import checkpoints, disk, launches
from run_folder.checkpoints import Manifest
from tests.run_folder import power
from tests.run_folder.saving import COUNTS, Place


def test_a_save_that_is_cut_off_leaves_this_checkpoint_or_the_one_before(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoints, "NUM_KEPT", 3)  # so that some go
    run = tmp_path / "run"
    (run / "logs").mkdir(parents=True)
    log = run / "logs" / "episodes.csv"
    log.touch()
    fragile, place = power.Disk(run, monkeypatch), Place(run / "checkpoints")
    saved: list[Manifest] = []
    seen = 0
    went_back = 3  # to the second, and then saves a third anew
    for number, step in enumerate((2, 4, 6, 6, 8)):
        if number == went_back:
            place.saver = place.new_saver(checkpoints.without_replay(saved[-2]))
        place.learner = f"weights {number}"
        place.replays[0].items = 7 + number
        with log.open("a") as rows:
            rows.write(f"{step}\n")
        known = saved[-2 if number == went_back else -1 :]
        saved.append(place.saver.save(step, COUNTS, with_replay=number % 3 != 1))
        images = fragile.images()
        for image in images[seen:]:
            found = _found(image, tmp_path / f"image-{seen}")
            steps = {step, *(manifest.learner_step for manifest in known)}
            assert found.learner_step in steps if found else number == 0
            seen += 1
        assert found == saved[-1]
        assert images[-1]["logs/episodes.csv"] == log.read_bytes()
    assert seen > 50


def _found(image: power.Image, folder: pathlib.Path) -> Manifest | None:
    """The checkpoint that a run would go on from; fails unless it and all kept ones are whole."""
    power.write(image, folder)
    if not (folder / "checkpoints").exists():
        return None
    for step in checkpoints.kept_steps(folder / "checkpoints", "r2d2"):
        checkpoints.read_kept(folder / "checkpoints", "r2d2", step)
    return checkpoints.read(folder / "checkpoints")


def test_a_file_that_is_replaced_is_the_old_one_or_the_new_one(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = tmp_path / "run"
    run.mkdir()
    path = run / "config.json"
    path.write_text("old")
    fragile = power.Disk(run, monkeypatch)
    disk.write(path, "new")
    *before, last, also_last = [image["config.json"] for image in fragile.images()]
    assert set(before) == {b"old", b"new"}
    assert last == also_last == b"new"
    launches.record(run, ["--resume"], actor_steps=0, walltime=0.0)
    assert fragile.images()[-1]["launches.jsonl"] == (run / "launches.jsonl").read_bytes()
