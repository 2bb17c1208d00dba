"""Who runs a run folder: one launch at a time.

The launching process holds a lock on the file `lock` in the folder, in which it writes its host and
its process id. The lock is the operating system's: it ends with the process, however that ends, and
processes that were forked do not hold it. Where hosts share a file system that locks, as NFS does,
it holds between them.
"""

import contextlib
import errno
import fcntl
import os
import pathlib
import socket
import sys
from typing import IO

from run_folder import places
from run_folder.layout import RunFolder
from run_folder.settings import SettingsError

_HOLDER = "process "  # and its number, and its host
_HELD: dict[pathlib.Path, IO[str]] = {}


def take(run_dir: pathlib.Path) -> None:
    """Takes the lock of a run folder, until `release` or the end of this process.

    Where the file system has no locks, a line on stderr says so, and the launch goes on.

    Raises:
      SettingsError: another process holds it, a run would write through a link in the folder, or
        its `lock` is somebody's own file; no file has been changed.
      OSError: the folder cannot be written.
    """
    path = RunFolder(run_dir.resolve()).lock
    if path in _HELD:
        # Not opened again: a process loses its lock with the first descriptor that it closes.
        return
    places.refuse_links_in(RunFolder(run_dir))
    file = path.open("a+", errors="replace")
    try:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        with file:
            _explain(error, run_dir, file)
        return
    file.seek(0)
    if not _HOLDER.startswith(file.read(len(_HOLDER)).strip("\0")):  # a power cut leaves zeros
        file.close()
        raise SettingsError(f"{path} is no lock of a run: move it, or name another folder.")
    _HELD[path] = file
    file.truncate(0)
    file.write(f"{_HOLDER}{os.getpid()} on {socket.gethostname()}\n")
    file.flush()


def take_if_there(run_dir: pathlib.Path) -> None:
    """Takes the lock where the folder has a lock file; where it has none, nobody runs it.

    A launch that is refused for another reason has then left no file behind.
    """
    if RunFolder(run_dir).lock.exists():
        take(run_dir)


def is_held(run_dir: pathlib.Path) -> bool:
    """Whether another process runs a folder; this one must not."""
    path = RunFolder(run_dir.resolve()).lock
    with contextlib.suppress(FileNotFoundError), path.open() as file:  # maybe not to be written
        try:
            fcntl.lockf(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError as error:
            return error.errno in (errno.EACCES, errno.EAGAIN)
    return False


def release() -> None:
    """Gives back every lock that this process holds."""
    while _HELD:
        _HELD.popitem()[1].close()


def _explain(error: OSError, run_dir: pathlib.Path, file: IO[str]) -> None:
    """Raises SettingsError where another process holds the lock; else says that there is none."""
    if error.errno in (errno.EACCES, errno.EAGAIN):
        file.seek(0)
        holder = file.read().strip() or "another process"
        raise SettingsError(
            f"{run_dir} is being run by {holder}: end that run first, with Ctrl-C where it was "
            f"started, or with `touch {RunFolder(run_dir).stop}`."
        ) from None
    print(
        f"The file system of {run_dir} has no locks ({error.strerror}): see that no other launch "
        "uses this folder.",
        file=sys.stderr,
    )
