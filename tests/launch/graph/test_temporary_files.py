"""What a run leaves in the system's temporary folder: nothing."""

import os
import pathlib
import tempfile

import pytest

from launch.graph import temporary_files
from launch.local import node_process


def test_files_are_made_in_a_folder_that_goes(tmp_path: pathlib.Path) -> None:
    before = tempfile.gettempdir()
    with temporary_files.folder_of_a_run() as folder:
        descriptor, file = tempfile.mkstemp()
        os.close(descriptor)
        assert pathlib.Path(file).parent == folder
        assert os.environ["TMPDIR"] == str(folder)
    assert not folder.exists()
    assert tempfile.gettempdir() == before


def test_the_nodes_of_a_server_that_was_killed_remove_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    codes: list[int] = []
    monkeypatch.setattr(os, "_exit", codes.append)
    with temporary_files.folder_of_a_run() as folder:
        node_process._end_with(-1)  # nobody's parent
        assert not folder.exists()
    assert codes == [1]


def test_nothing_else_is_ever_removed(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    temporary_files.remove()
    assert tmp_path.exists()
