"""Files that are there whole or not at all, after a full disk, a kill or a power cut.

A disk writes in what order it likes until it is waited for. So what a file names, or what is to
take another's place, is waited for first; what is superseded goes after that.
"""

import contextlib
import fcntl
import math
import os
import pathlib
import re
from collections.abc import Iterator
from typing import NamedTuple

TEMPORARY = ".new"  # how the name of a file ends that is not yet in its place
LEAST_BYTES = 2**20  # that are free on a disk which is not full
LEAST_FILES = 16  # likewise: what a checkpoint of a learner takes, with folders and what is renamed

_GRAPHS_OWN = re.compile(r"{{.*?}}|\[Op:.*?\]")  # what TensorFlow says of where in a graph it was
_PARTS = re.compile(r"_temp/part-[^;]*")  # where it writes before it renames


def write(path: pathlib.Path, content: str | bytes, *, lasting: bool = True) -> None:
    """Puts a text, or bytes, in the place of what a file holds, or makes the file.

    Args:
      path: of the file.
      content: what it is to hold.
      lasting: whether it is on the disk when this returns. Else a power cut may leave nothing of
        it, nor of what was there.

    Raises:
      OSError: it cannot be written. What was there is there still, and nothing else.
    """
    temporary = path.with_name(path.name + TEMPORARY)
    try:
        temporary.write_bytes(content if isinstance(content, bytes) else content.encode())
        if lasting:
            sync(temporary)
        os.replace(temporary, path)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise
    if lasting:
        sync(path.parent)


def append(path: pathlib.Path, text: str, *, header: str) -> None:
    """Adds a text to a file, or makes the file, which then begins with a header.

    Raises:
      OSError: it cannot be written. The file is as it was.
    """
    with path.open("ab", buffering=0) as file:
        size = file.tell()
        left = (text if size else header + text).encode()
        try:
            while left:
                left = left[file.write(left) :]
        except OSError:  # which may have taken a part
            file.truncate(size)
            raise


@contextlib.contextmanager
def locked(folder: pathlib.Path) -> Iterator[None]:
    """Holds a folder's lock, which ends with this process at the latest.

    Raises:
      BlockingIOError: another process holds it.
      OSError: it is no folder, or its file system has no locks.
    """
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(descriptor)


def sync(*paths: pathlib.Path) -> None:
    """Waits until files are on the disk as they are now; of folders, the names that they hold.

    Raises:
      OSError: a file is not there, or the disk could not take what was written to it.
    """
    for path in paths:
        # Some file systems have no such thing for folders, and a folder above may be unreadable.
        with contextlib.suppress(*([OSError] if path.is_dir() else [])):
            descriptor = os.open(path, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)


def remove(path: pathlib.Path) -> None:
    """Removes a file that names others, which may go, or be written anew, when this returns."""
    path.unlink()
    sync(path.parent)


class Free(NamedTuple):
    """The room that a disk has left for its users."""

    bytes: float  # of what files hold
    files: float  # inodes; infinity where the file system makes them as they are needed


def free(folder: pathlib.Path) -> Free:
    """The room on the disk of a folder, which may yet have to be made."""
    there = next(place for place in (folder, *folder.absolute().parents) if place.exists())
    left = os.statvfs(there)
    return Free(left.f_bavail * left.f_frsize, left.f_favail if left.f_files else math.inf)


def full(folder: pathlib.Path) -> str:
    """A sentence's part where the disk of a folder is full: of what; empty where there is room."""
    left = free(folder)
    if left.bytes < LEAST_BYTES:
        return f"The disk of {folder} is full ({left.bytes:,} bytes are free)"
    if left.files < LEAST_FILES:
        return f"The disk of {folder} is full (inodes for {left.files:,} more files are free)"
    return ""


def said(error: Exception) -> str:
    """A file system's words on a file, in a line without a point at its end."""
    if isinstance(error, OSError) and error.strerror:
        where = f"{error.filename}: " if error.filename else ""
        return f"{where}{error.strerror}"
    message = _GRAPHS_OWN.sub("", getattr(error, "message", None) or str(error)).strip()
    first = (message or type(error).__name__).splitlines()[0].strip()
    return _PARTS.sub("", first).removesuffix(".")
