"""What a run's processes leave in the system's temporary folder: in one of the run's own there.

TensorFlow's autograph, Launchpad and engines leave hundreds of files behind.
"""

import contextlib
import os
import pathlib
import shutil
import tempfile
from collections.abc import Iterator

_PREFIX = "recurrent-replay-"
_VARIABLE = "TMPDIR"  # where Python and others look first


@contextlib.contextmanager
def folder_of_a_run() -> Iterator[pathlib.Path]:
    """Makes a temporary folder that this process and those that it starts use; removed at the end.

    Raises:
      OSError: it cannot be made.
    """
    before = os.environ.get(_VARIABLE), tempfile.tempdir
    folder = tempfile.mkdtemp(prefix=_PREFIX)
    os.environ[_VARIABLE] = tempfile.tempdir = folder
    try:
        yield pathlib.Path(folder)
    finally:
        os.environ.pop(_VARIABLE)
        if before[0] is not None:
            os.environ[_VARIABLE] = before[0]
        tempfile.tempdir = before[1]
        shutil.rmtree(folder, ignore_errors=True)


def left() -> set[pathlib.Path]:
    """The folders of all runs that are there: of those that go on, and what others left."""
    return set(pathlib.Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"))


def remove() -> None:
    """Removes the run's folder from within one of its nodes, whose launcher could not."""
    folder = pathlib.Path(tempfile.gettempdir())
    if folder.name.startswith(_PREFIX):
        shutil.rmtree(folder, ignore_errors=True)
