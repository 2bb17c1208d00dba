"""A manifest names what is whole, and what is not is noticed; some earlier learners are kept."""

import json
import math
import pathlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.requirements import LARGEST
from run_folder import checkpoints
from run_folder.checkpoints import CheckpointError, Manifest
from tests import fuzzing
from tests.fuzzing import JSON, Edits
from tests.run_folder.manifests import MANIFEST
from tests.run_folder.saving import COUNTS, Place, save_all, saved_in


@pytest.fixture
def place(tmp_path: pathlib.Path) -> Place:
    return Place(tmp_path)


def test_a_manifest_says_what_was_saved(place: Place) -> None:
    manifest = save_all(place.saver, 3, COUNTS)
    read = saved_in(place.folder)
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
    manifest = save_all(place.saver, 3, COUNTS)
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
        ("learner", "learner-r2d2/../../3", "learner must be a path inside"),
        (
            "learner",
            "learner-r2d2/4",
            "learner must be 'learner-r2d2/3', of agent and learner_step",
        ),
        ("agent", "../../x", "learner must be 'learner-../../x/3', of agent and learner_step, got"),
        ("sizes", {}, "sizes must name 'learner-r2d2/3.index', got []."),
        ("sizes", {"learner-r2d2/3.index": 5}, "sizes must name 'learner-r2d2/3.data', got ['l"),
        ("learner_step", -3, "learner_step must be a whole number from 0 to"),
        ("replay", "replay/../3-1", "replay must be replay/<update>-<milliseconds>"),
        ("sizes", {"learner-r2d2/3.data": -7}, "sizes must name files by a path inside"),
        ("sizes", {"../../elsewhere": 7}, "got '../../elsewhere': 7"),
        ("\x1b[2J", {}, "'\\x1b[2J' is no field here;"),
        ("sizez", {}, "sizez is no field here, the nearest is sizes"),
    ],
)
def test_an_edited_manifest_is_refused_by_file_and_field(
    place: Place, field: str, value: Any, said: str
) -> None:
    save_all(place.saver, 3, COUNTS)
    path = place.folder / checkpoints.MANIFEST
    path.write_text(json.dumps({**json.loads(path.read_text()), field: value}))
    with pytest.raises(checkpoints.CheckpointError) as error:
        checkpoints.read(place.folder)
    assert str(error.value).startswith(f"The checkpoint manifest {path} is corrupt: ")
    assert said in str(error.value)


def test_every_checkpoint_leaves_its_learner_and_no_replay(place: Place) -> None:
    for step in (3, 5, 10):
        place.learner = f"weights of {step}"
        save_all(place.saver, step, {**COUNTS, "actor_steps": 10 * step})
    assert checkpoints.kept_steps(place.folder, "r2d2") == [3, 5, 10]
    manifest = checkpoints.read_kept(place.folder, "r2d2", 5)
    assert (manifest.learner_step, manifest.actor_steps, manifest.walltime) == (5, 50, 7.5)
    assert (manifest.replay, manifest.replay_items) == (None, 0)
    assert set(manifest.sizes) == {"learner-r2d2/5.index", "learner-r2d2/5.data"}
    assert (place.folder / "learner-r2d2" / "5.data").read_text() == "weights of 5"


@pytest.mark.parametrize(
    ("step", "sentence"),
    [
        (4, "no step 4 of r2d2; there are 3, 5"),
        (35, "no step 35 of r2d2; there are 3, 5"),
        (10**300, "000 of r2d2; there are 3, 5"),  # no file has so long a name
    ],
)
def test_a_step_that_is_not_there(place: Place, step: int, sentence: str) -> None:
    for saved in (3, 5):
        place.saver.save(saved, COUNTS)
    with pytest.raises(CheckpointError, match=sentence):
        checkpoints.read_kept(place.folder, "r2d2", step)
    with pytest.raises(CheckpointError, match=r"of impala; there are none\."):
        checkpoints.read_kept(place.folder, "impala", 3)


def test_what_is_no_step_is_no_snapshot(place: Place) -> None:
    place.saver.save(3, COUNTS)
    for name in ("copy", "-3", "3 (1)", "07", "٧"):
        (place.folder / "learner-r2d2" / f"manifest-{name}.json").write_text("{}")
    assert checkpoints.kept_steps(place.folder, "r2d2") == [3]


def test_a_manifest_of_another_step_is_refused(place: Place) -> None:
    for step in (3, 5):
        place.saver.save(step, COUNTS)
    learners = place.folder / "learner-r2d2"
    (learners / "manifest-5.json").write_bytes((learners / "manifest-3.json").read_bytes())
    with pytest.raises(CheckpointError, match=r"must be of r2d2 at step 5, got r2d2 at 3\."):
        checkpoints.read_kept(place.folder, "r2d2", 5)


def test_a_long_run_keeps_few(place: Place) -> None:
    last = 40
    for step in range(1, last + 1):
        place.saver.save(step, COUNTS)
    kept = checkpoints.kept_steps(place.folder, "r2d2")
    assert len(kept) == checkpoints.NUM_KEPT
    assert (kept[0], kept[-1]) == (1, last)
    assert place.files() == {"manifest.json", *Place.learner_files("r2d2", *kept)}


@pytest.mark.parametrize(
    ("kept", "least"), [([0, 4, 5, 20], 4), ([0, 15, 16, 20], 16), ([3, 8, 13, 18], 8)]
)
def test_the_one_goes_that_leaves_the_smallest_gap(kept: list[int], least: int) -> None:
    assert checkpoints.least_missed(kept) == least
    left = {step: np.diff([s for s in kept if s != step]).max() for step in kept[1:-1]}
    assert left[least] == min(left.values())


def _thinned(steps: list[int]) -> Iterator[list[int]]:
    """The steps that are left after each save."""
    kept: list[int] = []
    for step in steps:
        kept.append(step)
        if len(kept) > checkpoints.NUM_KEPT:
            kept.remove(checkpoints.least_missed(kept))
        yield list(kept)


def test_what_is_kept_is_spread_evenly_however_long_the_run_lasts() -> None:
    for last, kept in enumerate(_thinned(list(range(0, 2_000))), start=1):
        if last > checkpoints.NUM_KEPT:
            gaps = np.diff(kept)[:-1]  # the newest is as new as it is
            assert gaps.max() <= 3 * gaps.min()
            assert gaps.max() <= 2 * last / (checkpoints.NUM_KEPT - 2)


_STEP = 3
_LEARNER, _REPLAY = f"learner-r2d2/{_STEP}", f"replay/{_STEP}-1000"
_MANIFEST = vars(MANIFEST) | dict(
    learner_step=_STEP,
    learner=_LEARNER,
    replay=_REPLAY,
    replay_items=12,
    sizes={
        f"{_LEARNER}.index": 5,
        f"{_LEARNER}.data": 7,
        f"{_REPLAY}/0/chunks": 7,
        f"{_REPLAY}/1/chunks": 5,
    },
)
_PATHS = ("../../x", _LEARNER, "learner-r2d2", "3", ".", "replay", "replay/3-1/..", "/", "a/../b")
_EDITS = fuzzing.edits(_MANIFEST) | st.lists(
    st.tuples(
        st.sampled_from([("learner",), ("replay",), ("agent",), ("sizes", "../../x")]),
        st.sampled_from([*_PATHS, 5]),
    ),
    min_size=1,
    max_size=2,
)


@pytest.fixture
def folder(tmp_path: pathlib.Path) -> pathlib.Path:
    """A checkpoint with a replay, whose manifest each example replaces."""
    (tmp_path / "run" / "checkpoints").mkdir(parents=True)
    place = Place(tmp_path / "run" / "checkpoints")
    save_all(place.saver, _STEP, COUNTS)
    (replay,) = (place.folder / "replay").iterdir()
    replay.rename(place.folder / _REPLAY)
    (tmp_path / "x").write_text("what is outside")
    return place.folder


@given(edits=_EDITS)
def test_an_edited_manifest_is_whole_or_is_refused(edits: Edits, folder: pathlib.Path) -> None:
    refused = _read(folder, json.dumps(fuzzing.edited(_MANIFEST, edits)).encode())
    names = {name for path, _ in edits for name in path}
    assert refused is None or any(fuzzing.quotes(refused, name) for name in (*names, "missing"))


@given(said=JSON)
def test_any_other_json_is_refused(said: Any, folder: pathlib.Path) -> None:
    assert _read(folder, json.dumps(said).encode())


@given(share=st.floats(0, 1), more=st.binary(max_size=5))
def test_a_part_of_a_manifest_is_refused(share: float, more: bytes, folder: pathlib.Path) -> None:
    text = json.dumps(_MANIFEST, indent=2).encode()
    cut = int(share * len(text))
    assert _read(folder, text[:cut] + more) or cut == len(text)


@given(edits=_EDITS, name=st.sampled_from(["3", "4", "03", "x"]))
def test_an_edited_manifest_of_a_kept_learner_is_of_its_step_or_is_refused(
    edits: Edits, name: str, folder: pathlib.Path
) -> None:
    said = fuzzing.edited(_MANIFEST, edits) if name == "3" else _MANIFEST
    file = folder / f"learner-r2d2/manifest-{name}.json"
    file.write_text(json.dumps(said))
    for step in checkpoints.kept_steps(folder, "r2d2"):
        try:
            kept = checkpoints.read_kept(folder, "r2d2", step)
        except CheckpointError as error:
            fuzzing.check_sentence(str(error))
        else:
            _check_whole(folder, kept)
            assert (kept.agent, kept.learner_step) == ("r2d2", step)
    file.unlink()


def _read(folder: pathlib.Path, said: bytes) -> str | None:
    """Fails unless a manifest names what is whole, or is refused; then returns the sentence."""
    (folder / checkpoints.MANIFEST).write_bytes(said)
    try:
        manifest = checkpoints.read(folder)
    except CheckpointError as error:
        fuzzing.check_sentence(str(error))
        return str(error)
    assert manifest is not None
    _check_whole(folder, manifest)
    checkpoints.write(folder, checkpoints.MANIFEST, manifest)
    assert checkpoints.read(folder) == manifest
    return None


def _check_whole(folder: pathlib.Path, manifest: Manifest) -> None:
    """Fails for what no run can go on from, by what is known without the project's own checks."""
    for path in (manifest.learner, manifest.replay or "replay", *manifest.sizes):
        assert (folder / path).resolve().is_relative_to(folder.resolve())
    for suffix in ("index", "data"):
        assert (folder / f"{manifest.learner}.{suffix}").is_file()
    assert manifest.learner == f"learner-{manifest.agent}/{manifest.learner_step}"
    for name, value in vars(manifest).items():
        if isinstance(value, int | float):
            assert math.isfinite(value), name
            assert 0 <= value <= LARGEST, name
