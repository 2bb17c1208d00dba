"""A run's own folder in the system's temporary one, for all that its processes leave there.

TensorFlow's autograph, Launchpad and engines leave hundreds of files behind. The folder is locked
by the launching process, and so by its forks, for as long as one of them lives: of a run that was
killed as a whole, the next one removes it.
"""

import contextlib
import fcntl
import os
import pathlib
import shutil
import tempfile
from collections.abc import Iterator

_PREFIX = "recurrent-replay-"


@contextlib.contextmanager
def folder_of_a_run() -> Iterator[pathlib.Path]:
    """Makes a temporary folder that this process and those that it starts use; removed at the end.

    Raises:
      OSError: it cannot be made.
    """
    _remove_left()
    folder, lock = _make()
    before = os.environ.get("TMPDIR"), tempfile.tempdir
    os.environ["TMPDIR"] = tempfile.tempdir = folder
    try:
        yield pathlib.Path(folder)
    finally:
        del os.environ["TMPDIR"]
        if before[0] is not None:
            os.environ["TMPDIR"] = before[0]
        tempfile.tempdir = before[1]
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


def left() -> set[pathlib.Path]:
    """The folders of all runs that are there: of those that go on, and what others left."""
    return set(pathlib.Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"))


def remove() -> None:
    """Removes the run's folder from within one of its nodes, whose launcher could not."""
    folder = pathlib.Path(tempfile.gettempdir())
    if folder.name.startswith(_PREFIX):
        shutil.rmtree(folder, ignore_errors=True)


def _make() -> tuple[str, int]:
    """A new folder, and the descriptor that locks it."""
    while True:
        folder = tempfile.mkdtemp(prefix=_PREFIX)
        with contextlib.suppress(FileNotFoundError):  # another run took it for one that was left
            lock = os.open(folder, os.O_RDONLY)
            with contextlib.suppress(OSError):  # of a file system without locks none is removed
                fcntl.flock(lock, fcntl.LOCK_EX)
            if os.path.exists(folder):
                return folder, lock
            os.close(lock)


def _remove_left() -> None:
    """Removes what this user's runs have left, no process of which lives any more."""
    for folder in left():
        with contextlib.suppress(OSError):  # a link, another user's, or locked
            lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if os.fstat(lock).st_uid == os.getuid():
                    shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(lock)
