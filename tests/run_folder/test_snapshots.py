"""What earlier checkpoints leave behind: whole, evenly spread, and never in the way."""

import pathlib
from collections.abc import Iterator

import numpy as np
import pytest

from run_folder import checkpoints
from run_folder.checkpoints import CheckpointError
from tests.run_folder.saving import COUNTS, Place


@pytest.fixture
def place(tmp_path: pathlib.Path) -> Place:
    return Place(tmp_path)


def test_every_checkpoint_leaves_its_learner_and_no_replay(place: Place) -> None:
    for step in (3, 5, 10):
        place.learner = f"weights of {step}"
        place.saver.save(step, {**COUNTS, "actor_steps": 10 * step}, with_replay=True)
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
        place.saver.save(saved, COUNTS, with_replay=False)
    with pytest.raises(CheckpointError, match=sentence):
        checkpoints.read_kept(place.folder, "r2d2", step)
    with pytest.raises(CheckpointError, match=r"of impala; there are none\."):
        checkpoints.read_kept(place.folder, "impala", 3)


def test_what_is_no_step_is_no_snapshot(place: Place) -> None:
    place.saver.save(3, COUNTS, with_replay=False)
    for name in ("copy", "-3", "3 (1)", "07", "٧"):
        (place.folder / "learner-r2d2" / f"manifest-{name}.json").write_text("{}")
    assert checkpoints.kept_steps(place.folder, "r2d2") == [3]


def test_a_damaged_manifest_is_refused_by_its_name(place: Place) -> None:
    for step in (3, 5):
        place.saver.save(step, COUNTS, with_replay=False)
    (place.folder / "learner-r2d2" / "manifest-3.json").write_text('{"sizes": null}')
    with pytest.raises(CheckpointError, match=r"manifest-3\.json is corrupt: agent is missing"):
        checkpoints.read_kept(place.folder, "r2d2", 3)


def test_a_manifest_of_another_step_is_refused(place: Place) -> None:
    for step in (3, 5):
        place.saver.save(step, COUNTS, with_replay=False)
    learners = place.folder / "learner-r2d2"
    (learners / "manifest-5.json").write_bytes((learners / "manifest-3.json").read_bytes())
    with pytest.raises(CheckpointError, match=r"must be of r2d2 at step 5, got r2d2 at 3\."):
        checkpoints.read_kept(place.folder, "r2d2", 5)


def test_damage_is_noticed_where_it_is(place: Place) -> None:
    for step in (3, 5):
        place.saver.save(step, COUNTS, with_replay=False)
    (place.folder / "learner-r2d2" / "3.data").write_text("less")
    with pytest.raises(CheckpointError, match=r"3\.data has 4 bytes"):
        checkpoints.read_kept(place.folder, "r2d2", 3)
    assert checkpoints.read_kept(place.folder, "r2d2", 5).learner_step == 5
    assert checkpoints.read(place.folder) is not None  # the run can go on


def test_a_step_that_is_saved_again_is_kept_once(place: Place) -> None:
    for _ in range(2):
        place.saver.save(3, COUNTS, with_replay=True)
    assert checkpoints.kept_steps(place.folder, "r2d2") == [3]
    assert checkpoints.read(place.folder) == place.saver.last


def test_what_a_crash_leaves_half_written_is_no_snapshot_and_goes(place: Place) -> None:
    place.saver.save(3, COUNTS, with_replay=False)
    place.learner = "breaks"
    with pytest.raises(KeyboardInterrupt):
        place.saver.save(4, COUNTS, with_replay=False)
    assert (place.folder / "learner-r2d2" / "4.index").exists()
    assert checkpoints.kept_steps(place.folder, "r2d2") == [3]
    place.learner = "weights"
    place.saver.save(5, COUNTS, with_replay=False)
    assert place.files() == {"manifest.json", *Place.learner_files("r2d2", 3, 5)}


def test_a_folder_in_which_tensorflow_was_cut_short_goes_with_the_next_save(place: Place) -> None:
    place.saver.save(3, COUNTS, with_replay=False)
    half = place.folder / "learner-r2d2" / "4_temp"
    half.mkdir()
    (half / "part-00000-of-00001.data-00000-of-00001").write_text("half")
    (place.folder / "learner-r2d2" / "manifest-3.json.new").write_text("half")
    place.saver.save(5, COUNTS, with_replay=False)
    assert not half.exists()
    assert place.files() == {"manifest.json", *Place.learner_files("r2d2", 3, 5)}


def test_a_run_that_went_back_keeps_nothing_of_what_it_undid(place: Place) -> None:
    for step in (3, 5, 10):
        place.saver.save(step, COUNTS, with_replay=True)
    resumed = place.new_saver(checkpoints.read_kept(place.folder, "r2d2", 5))
    assert checkpoints.kept_steps(place.folder, "r2d2") == [3, 5, 10]  # until it has saved
    resumed.save(7, COUNTS, with_replay=False)
    assert checkpoints.kept_steps(place.folder, "r2d2") == [3, 5, 7]
    assert place.files() == {"manifest.json", *Place.learner_files("r2d2", 3, 5, 7)}


def test_a_long_run_keeps_few(place: Place) -> None:
    last = 40
    for step in range(1, last + 1):
        place.saver.save(step, COUNTS, with_replay=False)
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
    """What is left after each of the steps."""
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


def test_checkpoints_in_quick_succession_go_first() -> None:
    steps = [1_000 * i for i in range(1, 12)] + [11_010, 11_020, 12_000]
    *_, kept = _thinned(steps)
    assert kept == [1_000 * i for i in range(1, 13)]
