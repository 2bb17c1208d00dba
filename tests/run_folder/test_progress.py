"""What a coordinator wrote, as others read it."""

import json
import pathlib

import pytest

from run_folder import progress
from run_folder.layout import RunFolder


def test_progress_is_read_from_the_run_folder(tmp_path: pathlib.Path) -> None:
    assert progress.read(tmp_path) is None
    (tmp_path / "nodes").mkdir()
    RunFolder(tmp_path).progress.write_text(json.dumps({"state": "running"}))
    assert progress.read(tmp_path) == {"state": "running"}


@pytest.mark.parametrize("text", ["", '{"state": "fin', "7", "[" * 100_000])
def test_what_cannot_be_read_is_no_progress(tmp_path: pathlib.Path, text: str) -> None:
    (tmp_path / "nodes").mkdir()
    RunFolder(tmp_path).progress.write_text(text)
    assert progress.read(tmp_path) is None
    RunFolder(tmp_path).progress.unlink()
    RunFolder(tmp_path).progress.mkdir()
    assert progress.read(tmp_path) is None


@pytest.mark.parametrize(
    ("text", "ended"),
    [
        ('{"state": "finished"}', True),
        ('{"state": "running"}', False),
        ('{"sta', False),
        ("", False),
        ("[]", False),
        ("[" * 100_000, False),
    ],
)
def test_only_a_run_that_says_so_has_ended_in_order(
    tmp_path: pathlib.Path, text: str, ended: bool
) -> None:
    assert not progress.ended_in_order(tmp_path)
    (tmp_path / "nodes").mkdir()
    RunFolder(tmp_path).progress.write_text(text)
    assert progress.ended_in_order(tmp_path) == ended
