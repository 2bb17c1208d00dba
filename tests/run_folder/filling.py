"""A disk that fills while a file is written."""

import errno
import pathlib
from typing import Any

import pytest


class _Full:
    """A file of a disk that has room for so many bytes."""

    def __init__(self, file: Any, room: int) -> None:
        self._file, self._room = file, room

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def write(self, text: bytes) -> int:
        if not self._room:
            raise OSError(errno.ENOSPC, "No space left on device")
        written, self._room = self._file.write(text[: self._room]), 0
        return int(written)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


def fill(monkeypatch: pytest.MonkeyPatch, room: int) -> None:
    """Has each file that is opened from now on take so many bytes, and then no more."""
    usual = pathlib.Path.open
    monkeypatch.setattr(pathlib.Path, "open", lambda *how, **more: _Full(usual(*how, **more), room))
