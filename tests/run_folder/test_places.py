"""What stands where a launch writes, and is of another kind, is told before any process."""

import pathlib
from collections.abc import Callable

import pytest

from run_folder import places
from run_folder.layout import RunFolder
from run_folder.settings import SettingsError

FOLDER = "must be a folder, and is a file: move it away."
FILE = "must be a file, and is a folder: move it away."


@pytest.mark.parametrize("run_dir", ["runs/pong[1]", "runs/what?", "a*/b", "c\\d"])
def test_no_checkpoint_is_written_where_tensorflow_would_not_find_it(run_dir: str) -> None:
    with pytest.raises(SettingsError, match=r"takes . in the path .* would not find it"):
        places.check_name(run_dir)
    for fine in ("runs/pong 1", "runs/ü", "gs://bucket/runs/x", "$x{1}", ""):
        places.check_name(fine)


@pytest.mark.parametrize(
    ("name", "make", "said"),
    [
        ("logs", pathlib.Path.touch, FOLDER),
        ("checkpoints", pathlib.Path.touch, FOLDER),
        ("nodes", pathlib.Path.touch, FOLDER),
        ("logs/actor.csv", pathlib.Path.mkdir, FILE),
        ("events.out.tfevents.2", pathlib.Path.mkdir, FILE),
        ("launches.jsonl", pathlib.Path.mkdir, FILE),
        ("config.json", pathlib.Path.mkdir, FILE),
    ],
)
def test_it_is_named(
    name: str, make: Callable[[pathlib.Path], None], said: str, tmp_path: pathlib.Path
) -> None:
    places.check(RunFolder(tmp_path))  # of a run that begins, nothing is there
    (tmp_path / name).parent.mkdir(exist_ok=True)
    make(tmp_path / name)
    with pytest.raises(SettingsError) as refused:
        places.check(RunFolder(tmp_path))
    assert str(refused.value) == f"{tmp_path / name} {said}"
