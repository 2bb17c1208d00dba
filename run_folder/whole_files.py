"""Files that are there whole or not at all, after a full disk, a kill or a power cut.

A disk writes in what order it likes until it is waited for. So what a file names, or what is to
take another's place, is waited for first; what is superseded goes after that.
"""

import contextlib
import os
import pathlib

TEMPORARY = ".new"  # how the name of a file ends that is not yet in its place


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
        if isinstance(content, bytes):
            temporary.write_bytes(content)
        else:
            temporary.write_text(content)
        if lasting:
            sync(temporary)
        os.replace(temporary, path)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise
    if lasting:
        sync(path.parent)


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
