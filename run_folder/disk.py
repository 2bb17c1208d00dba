"""What a disk has left, and what is said when it takes no more."""

import math
import os
import pathlib
import re
from typing import NamedTuple

LEAST_BYTES = 2**20  # that are free on a disk which is not full
LEAST_FILES = 16  # likewise: what a checkpoint of a learner takes, with folders and what is renamed

_GRAPHS_OWN = re.compile(r"{{.*?}}|\[Op:.*?\]")  # what TensorFlow says of where in a graph it was
_TEMPORARY = re.compile(r"_temp/part-[^;]*")  # where it writes before it renames


class Free(NamedTuple):
    """What a disk has left for its users.

    Attributes:
      bytes: of what files hold.
      files: inodes; infinity where the file system makes them as they are needed.
    """

    bytes: float
    files: float


def free(folder: pathlib.Path) -> Free:
    """What the disk of a folder has left; of one that is yet to be made, too."""
    there = next(place for place in (folder, *folder.absolute().parents) if place.exists())
    left = os.statvfs(there)
    return Free(left.f_bavail * left.f_frsize, left.f_favail if left.f_files else math.inf)


def full(folder: pathlib.Path) -> str:
    """That the disk of a folder is full, and of what, for a sentence; empty where there is room."""
    left = free(folder)
    if left.bytes < LEAST_BYTES:
        return f"The disk of {folder} is full ({left.bytes:,} bytes are free)"
    if left.files < LEAST_FILES:
        return f"The disk of {folder} is full (inodes for {left.files:,} more files are free)"
    return ""


def said(error: Exception) -> str:
    """What a file system said and of which file, in a line without a point at its end."""
    if isinstance(error, OSError) and error.strerror:
        where = f"{error.filename}: " if error.filename else ""
        return f"{where}{error.strerror}"
    message = _GRAPHS_OWN.sub("", getattr(error, "message", None) or str(error)).strip()
    first = (message or type(error).__name__).splitlines()[0].strip()
    return _TEMPORARY.sub("", first).removesuffix(".")
