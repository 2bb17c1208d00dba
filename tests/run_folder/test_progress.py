"""A coordinator's progress, as others read it."""

import pathlib

import pytest

from run_folder import progress
from run_folder.layout import RunFolder


@pytest.mark.parametrize(
    ("text", "state"),
    [
        ('{"state": "finished"}', {"state": "finished"}),
        ('{"state": "running"}', {"state": "running"}),
        ("", None),
        ('{"state": "fin', None),
        ("[]", None),
        ("[" * 100_000, None),
    ],
)
def test_what_can_be_read_is_progress_and_says_whether_the_run_has_ended_in_order(
    tmp_path: pathlib.Path, text: str, state: dict[str, str] | None
) -> None:
    path = RunFolder(tmp_path).progress
    assert progress.read(tmp_path) is None
    path.parent.mkdir()
    path.write_text(text)
    assert progress.read(tmp_path) == state
    assert progress.ended_in_order(tmp_path) == (text == '{"state": "finished"}')
    path.unlink()
    path.mkdir()
    assert progress.read(tmp_path) is None
