"""A disk whose power is cut: what was not waited for is gone, as disks may choose."""

import os
import pathlib
from collections.abc import Iterator
from typing import Any

import pytest

Image = dict[str, bytes | None]  # path inside the folder -> what a file holds; None is a folder


class Disk:
    """The part of a folder that would be found again, had the power been cut.

    It sees each call of `os.fsync`, and takes two images before it: in both a file holds what it
    held when it was waited for last, and nothing if it never was. In one all names are as they are
    now, in the other as they were when their folder was waited for last. A disk may do either.

    Args:
      folder: all that is in there is on the disk at the start.
      monkeypatch: undoes this.
    """

    def __init__(self, folder: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._folder = folder
        self._held: dict[int, bytes] = {}
        self._names: dict[int, dict[str, tuple[int, bool]]] = {}
        self._kept: list[int] = []  # open, so that no other file gets their inodes
        self._images: list[Image] = []
        for path in (folder, *folder.rglob("*")):
            self._wait_for(path)
        monkeypatch.setattr(os, "fsync", self._sync)

    def images(self) -> list[Image]:
        """Those of all moments until now."""
        self._take()
        return self._images

    def _sync(self, descriptor: int) -> None:
        self._take()
        self._wait_for(pathlib.Path(f"/proc/self/fd/{descriptor}").resolve())

    def _take(self) -> None:
        self._images.append(dict(self._now()))
        self._images.append(dict(self._as_named(self._folder.stat().st_ino, "")))

    def _wait_for(self, path: pathlib.Path) -> None:
        descriptor = os.open(path, os.O_RDONLY)
        self._kept.append(descriptor)
        inode = os.fstat(descriptor).st_ino
        if path.is_dir():
            self._names[inode] = {
                inside.name: (inside.stat().st_ino, inside.is_dir()) for inside in path.iterdir()
            }
        else:
            self._held[inode] = path.read_bytes()

    def _now(self) -> Iterator[tuple[str, Any]]:
        for path in self._folder.rglob("*"):
            held = None if path.is_dir() else self._held.get(path.stat().st_ino, b"")
            yield str(path.relative_to(self._folder)), held

    def _as_named(self, folder: int, prefix: str) -> Iterator[tuple[str, Any]]:
        for name, (inode, is_folder) in self._names.get(folder, {}).items():
            yield f"{prefix}{name}", None if is_folder else self._held.get(inode, b"")
            yield from self._as_named(inode, f"{prefix}{name}/")


def write(image: Image, folder: pathlib.Path) -> None:
    """Makes a folder as it is found again."""
    folder.mkdir(parents=True)
    for name, held in sorted(image.items()):
        path = folder / name
        if held is None:
            path.mkdir()
        else:
            path.write_bytes(held)
