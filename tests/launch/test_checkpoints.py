"""A manifest that names what is whole, and what is not whole is noticed."""

import pathlib

import pytest

from launch import checkpoints
from tests.launch.saving import COUNTS, Place


@pytest.fixture
def place(tmp_path: pathlib.Path) -> Place:
    return Place(tmp_path)


def test_nothing_saved_is_no_error(tmp_path: pathlib.Path) -> None:
    assert checkpoints.read(tmp_path) is None


def test_a_manifest_says_what_was_saved(place: Place) -> None:
    manifest = place.saver.save(3, COUNTS, with_replay=True)
    read = checkpoints.read(place.folder)
    assert read is not None
    assert read == place.saver.last
    assert (read.agent, read.learner_step, read.learner) == ("r2d2", 3, "learner-r2d2/3")
    assert (read.actor_steps, read.episodes, read.trained_steps) == (100, 10, 50)
    assert read.walltime == 7.5
    assert (read.replay, read.replay_items) == (manifest.replay, 12)
    assert read.replay is not None
    assert read.replay.startswith("replay/3-")
    assert set(read.sizes) == place.files() - {"manifest.json", "learner-r2d2/manifest-3.json"}
    assert read.sizes["learner-r2d2/3.data"] == len("weights")


@pytest.mark.parametrize(
    "name", ["learner-r2d2/3.index", "learner-r2d2/3.data", "REPLAY/0/chunks", "REPLAY/1/chunks"]
)
def test_damage_is_noticed(place: Place, name: str) -> None:
    manifest = place.saver.save(3, COUNTS, with_replay=True)
    file = place.folder / name.replace("REPLAY", str(manifest.replay))
    size = file.stat().st_size
    file.write_text(file.read_text() + "!")
    with pytest.raises(checkpoints.CheckpointError, match=f"has {size + 1} bytes, .* {size}"):
        checkpoints.read(place.folder)
    file.unlink()
    with pytest.raises(checkpoints.CheckpointError, match="is missing"):
        checkpoints.read(place.folder)


@pytest.mark.parametrize("text", ["", "{", "[]", "null", "{}", '{"agent": "r2d2"}'])
def test_a_corrupt_manifest_is_an_error(place: Place, text: str) -> None:
    place.saver.save(3, COUNTS, with_replay=False)
    (place.folder / checkpoints.MANIFEST).write_text(text)
    with pytest.raises(checkpoints.CheckpointError, match=r"manifest\.json is corrupt"):
        checkpoints.read(place.folder)
