"""A file is replaced at once or not at all; when a disk is full, and what is told of it."""

import errno
import math
import os
import pathlib
from types import SimpleNamespace

import pytest
import tensorflow as tf

from run_folder import disk

BLOCK = 4_096
TENSORFLOWS = (
    "{{function_node __wrapped__SaveV2_dtypes_2_device_/job:localhost/replica:0/device:CPU:0}} "
    "run/3_temp/part-00000-of-00001.data-00000-of-00001.tempstate1341; No space left [Op:SaveV2]"
)


@pytest.mark.parametrize(
    ("blocks", "inodes", "of", "free", "lacks"),
    [
        (256, 16, 100, (2**20, 16), ""),
        (255, 16, 100, (255 * BLOCK, 16), "1,044,480 bytes are free"),
        (10**6, 15, 100, (10**6 * BLOCK, 15), "inodes for 15 more files are free"),
        (0, 0, 100, (0, 0), "0 bytes are free"),
        (256, 0, 0, (2**20, math.inf), ""),  # btrfs counts none
    ],
)
def test_a_disk_without_bytes_or_without_inodes_is_full(
    blocks: int,
    inodes: int,
    of: int,
    free: tuple[float, float],
    lacks: str,
    tmp_path: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = []

    def statvfs(path: pathlib.Path) -> SimpleNamespace:
        asked.append(path)
        return SimpleNamespace(f_bavail=blocks, f_frsize=BLOCK, f_favail=inodes, f_files=of)

    monkeypatch.setattr(os, "statvfs", statvfs)
    folder = tmp_path / "checkpoints" / "not made yet"
    assert disk.free(folder) == free
    assert disk.full(folder) == (lacks and f"The disk of {folder} is full ({lacks})")
    assert set(asked) == {tmp_path}


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (OSError(28, "No space left", "run/3.data"), "run/3.data: No space left"),
        (OSError(28, "No space left"), "No space left"),
        (OSError("it takes 3 MB"), "it takes 3 MB"),
        (tf.errors.ResourceExhaustedError(None, None, TENSORFLOWS), "run/3; No space left"),
        (tf.errors.UnavailableError(None, None, ""), "UnavailableError"),
        (RuntimeError("Socket closed.\nAt 0x7f"), "Socket closed"),
        (IndexError(), "IndexError"),
    ],
)
def test_what_is_said_of_a_failure_is_what_and_where(error: Exception, said: str) -> None:
    assert disk.said(error) == said


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
