"""Whatever a manifest holds names a whole checkpoint inside its folder, or is refused."""

import json
import math
import pathlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.requirements import LARGEST
from run_folder import checkpoints
from run_folder.checkpoints import MANIFEST, CheckpointError, Manifest
from tests import fuzzing
from tests.fuzzing import JSON, Edits
from tests.run_folder.saving import COUNTS, Place

_STEP = 3
_LEARNER, _REPLAY = f"learner-r2d2/{_STEP}", f"replay/{_STEP}-1000"
_MANIFEST = dict(
    agent="r2d2",
    learner_step=_STEP,
    learner=_LEARNER,
    replay=_REPLAY,
    replay_items=12,
    replay_saved_at=1.0,
    replay_seconds=0.5,
    actor_steps=100,
    episodes=10,
    trained_steps=50,
    walltime=7.5,
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
    folder = tmp_path / "run" / "checkpoints"
    folder.mkdir(parents=True)
    place = Place(folder)
    place.saver.save(_STEP, COUNTS, with_replay=True)
    (replay,) = (place.folder / "replay").iterdir()
    replay.rename(place.folder / _REPLAY)
    (tmp_path / "x").write_text("what is outside")
    return place.folder


@given(edits=_EDITS)
def test_an_edited_manifest_is_whole_or_is_refused(edits: Edits, folder: pathlib.Path) -> None:
    refused = _read(folder, MANIFEST, json.dumps(fuzzing.edited(_MANIFEST, edits)).encode())
    names = {name for path, _ in edits for name in path}
    assert refused is None or any(fuzzing.quotes(refused, name) for name in (*names, "missing"))


@given(said=JSON)
def test_any_other_json_is_refused(said: Any, folder: pathlib.Path) -> None:
    assert _read(folder, MANIFEST, json.dumps(said).encode())


@given(share=st.floats(0, 1), more=st.binary(max_size=5))
def test_a_part_of_a_manifest_is_refused(share: float, more: bytes, folder: pathlib.Path) -> None:
    text = json.dumps(_MANIFEST, indent=2).encode()
    cut = int(share * len(text))
    assert _read(folder, MANIFEST, text[:cut] + more) or cut == len(text)


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


def _read(folder: pathlib.Path, name: str, said: bytes) -> str | None:
    """Fails unless a manifest names what is whole, or is refused; then returns the sentence."""
    (folder / name).write_bytes(said)
    try:
        manifest = checkpoints.read(folder, name)
    except CheckpointError as error:
        fuzzing.check_sentence(str(error))
        return str(error)
    assert manifest is not None
    _check_whole(folder, manifest)
    checkpoints.write(folder, name, manifest)
    assert checkpoints.read(folder, name) == manifest
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
