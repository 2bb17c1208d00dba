"""A manifest that names what is whole, and what is not whole is noticed."""

import json
import pathlib
from typing import Any

import pytest

from run_folder import checkpoints
from tests.run_folder.saving import COUNTS, Place


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


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("agent", None, "agent must be text, got None"),
        ("learner", None, "learner must be text, got None"),
        ("learner", "", "learner must be a path inside the checkpoint folder, got ''"),
        ("learner", "../learner-r2d2/3", "learner must be a path inside"),
        ("learner", "/etc/passwd", "learner must be a path inside"),
        ("learner", "learner-r2d2/../../3", "learner must be a path inside"),
        ("learner", "x" * 300, "learner must be a path inside"),
        ("learner", "a\0b", "learner must be a path inside"),
        (
            "learner",
            "learner-r2d2/4",
            "learner must be 'learner-r2d2/3', of agent and learner_step",
        ),
        ("agent", "../../x", "learner must be 'learner-../../x/3', of agent and learner_step, got"),
        ("sizes", {}, "sizes must name 'learner-r2d2/3.index', got []."),
        ("sizes", {"learner-r2d2/3.index": 5}, "sizes must name 'learner-r2d2/3.data', got ['l"),
        ("learner_step", -3, "learner_step must be a whole number from 0 to"),
        ("learner_step", "3", "learner_step must be a whole number, got '3'"),
        ("replay", 7, "replay must be text or None, got 7"),
        ("replay", "replay", "replay must be replay/<update>-<milliseconds> or None, got 'replay'"),
        ("replay", "replay/../3-1", "replay must be replay/<update>-<milliseconds>"),
        ("replay_items", 1.5, "replay_items must be a whole number, got 1.5"),
        ("actor_steps", -1, "actor_steps must be a whole number from 0 to"),
        ("trained_steps", True, "trained_steps must be a whole number, got True"),
        ("walltime", float("nan"), "walltime must be a number, got nan"),
        ("walltime", None, "walltime must be a number, got None"),
        ("sizes", None, "sizes must be an object, each a whole number, got None"),
        ("sizes", [3], "sizes must be an object"),
        ("sizes", {"learner-r2d2/3.data": "7"}, "sizes must be an object"),
        ("sizes", {"learner-r2d2/3.data": -7}, "sizes must name files by a path inside"),
        ("sizes", {"../../elsewhere": 7}, "got '../../elsewhere': 7"),
        ("\x1b[2J", {}, "'\\x1b[2J' is no field here."),
        ("sizez", {}, "sizez is no field here, the nearest is sizes"),
    ],
)
def test_an_edited_manifest_is_refused_by_file_and_field(
    place: Place, field: str, value: Any, said: str
) -> None:
    place.saver.save(3, COUNTS, with_replay=True)
    path = place.folder / checkpoints.MANIFEST
    path.write_text(json.dumps({**json.loads(path.read_text()), field: value}))
    with pytest.raises(checkpoints.CheckpointError) as error:
        checkpoints.read(place.folder)
    assert str(error.value).startswith(f"The checkpoint manifest {path} is corrupt: ")
    assert said in str(error.value)


def test_a_manifest_that_is_a_folder_is_refused(place: Place) -> None:
    (place.folder / checkpoints.MANIFEST).mkdir()
    with pytest.raises(
        checkpoints.CheckpointError, match=r"manifest\.json cannot be read: Is a dir"
    ):
        checkpoints.read(place.folder)


@pytest.mark.parametrize("text", ["", "{", "[]", "null", "{}", '{"agent": "r2d2"}', "[" * 100_000])
def test_a_corrupt_manifest_is_an_error(place: Place, text: str) -> None:
    place.saver.save(3, COUNTS, with_replay=False)
    (place.folder / checkpoints.MANIFEST).write_text(text)
    with pytest.raises(checkpoints.CheckpointError, match=r"manifest\.json is corrupt"):
        checkpoints.read(place.folder)
