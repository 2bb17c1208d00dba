"""A file that is replaced at once, or not at all."""

import errno
import pathlib

import pytest

from run_folder import disk


def test_a_text_takes_the_place_of_another(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "file.json"
    for text in ("first", "second and longer", ""):
        disk.write(path, text)
        assert path.read_text() == text
        assert list(tmp_path.iterdir()) == [path]


def test_a_full_disk_leaves_what_was_there_and_nothing_else(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "file.json"
    disk.write(path, "first")
    write = pathlib.Path.write_bytes

    def write_half(file: pathlib.Path, data: bytes) -> int:
        write(file, data[: len(data) // 2])
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(pathlib.Path, "write_bytes", write_half)
    with pytest.raises(OSError, match="No space left"):
        disk.write(path, "second")
    assert path.read_text() == "first"
    assert list(tmp_path.iterdir()) == [path]
