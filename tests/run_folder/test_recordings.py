"""Folders of episodes: what is written is read, and what does not belong there is refused."""

import contextlib
import pathlib
from typing import Any

import numpy as np
import pytest
import tree
from acme import specs

from environments.dm import make_environment_spec
from run_folder import recordings
from run_folder.recordings import Episode
from run_folder.texts import SettingsError

SPEC = specs.EnvironmentSpec(
    observations={"image": specs.Array((3, 2), np.uint8), "words": specs.Array((4,), np.int32)},
    actions=specs.DiscreteArray(5),
    rewards=specs.Array((), np.float32),
    discounts=specs.BoundedArray((), np.float32, 0, 1),
)


def episode(steps: int, seed: int = 0) -> Episode:
    rng = np.random.default_rng(seed)
    ends = np.arange(steps) == steps - 1
    return Episode(
        {
            "image": rng.integers(0, 256, (steps + 1, 3, 2), np.uint8),
            "words": rng.integers(0, 9, (steps + 1, 4), np.int32),
        },
        rng.integers(0, 5, steps, np.int32),
        rng.normal(size=steps).astype(np.float32),
        ends & bool(seed % 2),
        ends & (seed % 2 == 0),
        rng.integers(0, 4, steps + 1, np.uint8),
    )


def test_episodes_are_read_as_they_were_written_and_in_order(tmp_path: pathlib.Path) -> None:
    folder = tmp_path / "new" / "demos"
    assert recordings.begin(folder, "task", SPEC) == 0
    written = [episode(steps, seed=steps) for steps in (3, 1, 12)]
    for each in written:
        recordings.append(folder, each)
    assert recordings.begin(folder, "task", SPEC) == 3
    assert recordings.lengths(folder) == [3, 1, 12]
    for path, each in zip(recordings.files(folder), written, strict=True):
        found = recordings.read(path, SPEC)
        tree.map_structure(np.testing.assert_array_equal, found, each)
    assert recordings.check(folder, ("other", "task"), SPEC) == "task"


def test_a_file_that_was_not_finished_counts_for_nothing(tmp_path: pathlib.Path) -> None:
    recordings.begin(tmp_path / "demos", "task", SPEC)
    recordings.append(tmp_path / "demos", episode(2))
    (tmp_path / "demos" / "episode_000001.npz.new").write_bytes(b"PK")
    assert recordings.begin(tmp_path / "demos", "task", SPEC) == 1
    recordings.append(tmp_path / "demos", episode(4))
    assert recordings.lengths(tmp_path / "demos") == [2, 4]


def test_an_episode_that_was_removed_is_not_replaced_by_one_of_its_name(
    tmp_path: pathlib.Path,
) -> None:
    recordings.begin(tmp_path / "demos", "task", SPEC)
    for steps in (1, 2, 3):
        recordings.append(tmp_path / "demos", episode(steps))
    recordings.files(tmp_path / "demos")[0].unlink()
    recordings.append(tmp_path / "demos", episode(4))
    assert recordings.lengths(tmp_path / "demos") == [2, 3, 4]


def test_other_tasks_and_forms_are_refused(tmp_path: pathlib.Path) -> None:
    folder = tmp_path / "demos"
    with pytest.raises(SettingsError, match=r"holds no episodes: launch.record makes some"):
        recordings.check(folder, ("task",), SPEC)
    recordings.begin(folder, "task", SPEC)
    with pytest.raises(SettingsError, match="holds no episode yet"):
        recordings.check(folder, ("task",), SPEC)
    recordings.append(folder, episode(2))
    with pytest.raises(SettingsError, match="env must be one of other, got 'task'"):
        recordings.begin(folder, "other", SPEC)
    more = SPEC._replace(actions=specs.DiscreteArray(6))
    with pytest.raises(SettingsError, match=r"actions must be int32 \[\] \[0\] to \[5\], as this"):
        recordings.check(folder, ("task",), more)
    with pytest.raises(SettingsError, match="observations must be uint8"):
        recordings.check(folder, ("task",), make_environment_spec("catch"))
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.tex").touch()
    thesis = tmp_path / "full" / "thesis.tex"
    for folder, said in (
        (thesis.parent, "holds something else than episodes"),
        (thesis, "holds something else than episodes"),
        (thesis / "demos", "thesis.tex/demos cannot be made: Not a directory"),
    ):
        with pytest.raises(SettingsError, match=said):
            recordings.begin(folder, "task", SPEC)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (
            dict(actions=np.full(4, 5, np.int32)),
            r"actions must be within int32 \[\] \[0\] to \[4\]",
        ),
        (dict(actions=np.full(4, -1, np.int32)), "actions must be within"),
        (dict(actions=np.zeros(3, np.int32)), r"actions must be int32 \[4\], of at least one step"),
        (dict(actions=np.zeros(4, np.int64)), r"actions must be int32 \[4\].* got int64 \[4\]"),
        (dict(rewards=np.zeros(0, np.float32)), "of at least one step"),
        (dict(lives=np.zeros(4, np.uint8)), r"lives must be uint8 \[5\]"),
        (dict(observations={"image": np.zeros((5, 3, 2), np.uint8)}), "observations/words must be"),
        (
            dict(observations=np.zeros((5, 3, 2), np.uint8)),
            r"observations/image must be uint8 \[5, 3, 2\]",
        ),
    ],
)
def test_a_file_of_another_form_is_refused(
    tmp_path: pathlib.Path, change: dict[str, Any], sentence: str
) -> None:
    recordings.begin(tmp_path / "demos", "task", SPEC)
    recordings.append(tmp_path / "demos", episode(4)._replace(**change))
    (path,) = recordings.files(tmp_path / "demos")
    with pytest.raises(SettingsError, match=sentence):
        recordings.read(path, SPEC)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (dict(rewards=np.array([0, 1, np.nan, 0], np.float32)), "rewards must be finite"),
        (dict(actions=np.array([0, 1, 4, 0], np.int32)), "actions must be legal, and 4 at step 2"),
        (dict(actions=np.array([0, 1, 3, 2], np.int32)), None),
    ],
)
def test_steps_that_nobody_should_learn_from_are_refused(
    change: dict[str, Any], sentence: str | None
) -> None:
    mask = specs.BoundedArray((5,), np.uint8, 0, 1)
    spec = SPEC._replace(observations={**SPEC.observations, "action_mask": mask})
    whole = episode(4)
    legal = np.array([[1, 1, 1, 1, 0]] * 4 + [[0] * 5], np.uint8)
    whole = whole._replace(observations={**whole.observations, "action_mask": legal}, **change)
    with pytest.raises(ValueError, match=sentence) if sentence else contextlib.nullcontext():
        recordings.check_steps(whole, spec)


def test_one_process_records_into_a_folder(tmp_path: pathlib.Path) -> None:
    folder = tmp_path / "demos"
    recordings.begin(folder, "task", SPEC)
    with recordings.alone(folder):
        (folder / "recording.json").unlink()  # who begins now, too, puts another in its place
        recordings.begin(folder, "task", SPEC)
        another = pytest.raises(SettingsError, match="Another process is recording into")
        with another, recordings.alone(folder):
            pass
    with recordings.alone(folder):
        pass


def test_files_of_somebodys_own_are_told_of(tmp_path: pathlib.Path) -> None:
    folder = tmp_path / "demos"
    recordings.begin(folder, "task", SPEC)
    array = folder / "episode_000000.npz"
    with array.open("wb") as file:
        np.save(file, np.zeros(3))
    with pytest.raises(SettingsError, match=r"episode_000000.npz cannot be read: it holds one"):
        recordings.read(array, SPEC)
    (folder / "recording.json").write_text("[]")
    with pytest.raises(SettingsError, match=r"recording.json cannot be read: an object was"):
        recordings.begin(folder, "task", SPEC)


@pytest.mark.parametrize("left", [0, 10, 400])
def test_a_damaged_file_is_refused(tmp_path: pathlib.Path, left: int) -> None:
    recordings.begin(tmp_path / "demos", "task", SPEC)
    recordings.append(tmp_path / "demos", episode(4))
    (path,) = recordings.files(tmp_path / "demos")
    path.write_bytes(path.read_bytes()[:left])
    with pytest.raises(SettingsError, match=r"episode_000000.npz cannot be read"):
        recordings.read(path, SPEC)
