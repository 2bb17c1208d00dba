"""A process's part of a run folder in a bucket, and how it gets there.

Files in a bucket cannot be appended to or renamed at once, and a failed request must not end a run.
So a process works in a folder of its own, as it would in a run folder on disk, and a thread copies
what it wrote there to the bucket through TensorFlow's file system. What an earlier part of the run
left, and this process goes on with, is fetched first. No two processes write the same file.
"""

import atexit
import contextlib
import os
import pathlib
import sys
import threading
from collections.abc import Iterable

import tensorflow as tf

from run_folder import disk
from run_folder.layout import CHECKPOINTS, RunDir
from run_folder.mirrors import Mirror

PUSH_SECONDS = 60.0  # between two looks for what was written
_CHECKPOINTS = f"{CHECKPOINTS}/"  # pushed when one is complete, by the one who wrote it
_STAGING = f"{CHECKPOINTS}/staging/"  # see `run_folder.replay_files`

Stamp = tuple[int, int]  # of a file: nanoseconds of its last change, bytes


class InBucket(Mirror):
    """A process's part of a run folder in a bucket."""

    def __init__(self, run_dir: RunDir) -> None:
        super().__init__(run_dir)
        self._seen: dict[str, Stamp] = {}  # as they are in the bucket
        self._lock = threading.Lock()

    def keep_pushed(self) -> None:
        atexit.register(self.push, checkpoints=True)
        threading.Thread(target=self._push_for_ever, daemon=True).start()

    def fetch(self, *patterns: str) -> None:
        with self._lock:
            for pattern in patterns:
                for url in tf.io.gfile.glob(f"{self.root}/{pattern}"):
                    if not tf.io.gfile.isdir(url):
                        self._fetch(url.removeprefix(f"{self.root}/"))

    def push(self, *, checkpoints: bool = False) -> bool:
        with self._lock:
            try:
                self._push(checkpoints)
            except tf.errors.OpError as error:
                print(f"{self.root} could not be written: {disk.said(error)}.", file=sys.stderr)
                return False
        return True

    def _fetch(self, name: str) -> None:
        file = self.path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        tf.io.gfile.copy(f"{self.root}/{name}", str(file), overwrite=True)
        self._seen[name] = _stamp(file)

    def _push(self, checkpoints: bool) -> None:
        here = {
            name: stamp
            for name, stamp in _stamps(self.path)
            if not name.startswith(_STAGING)
            and not name.endswith(disk.TEMPORARY)
            and (checkpoints or not name.startswith(_CHECKPOINTS))
        }
        for name in sorted(here, key=_rank):
            if self._seen.get(name) != here[name]:
                with contextlib.suppress(tf.errors.NotFoundError):  # replaced since it was seen
                    tf.io.gfile.copy(str(self.path / name), f"{self.root}/{name}", overwrite=True)
                    self._seen[name] = here[name]
        for name in [name for name in self._seen if not (self.path / name).exists()]:
            if checkpoints or not name.startswith(_CHECKPOINTS):
                with contextlib.suppress(tf.errors.NotFoundError):
                    tf.io.gfile.remove(f"{self.root}/{name}")
                del self._seen[name]

    def _push_for_ever(self) -> None:
        wait = threading.Event()
        while not wait.wait(PUSH_SECONDS):
            self.push()


def _stamps(folder: pathlib.Path) -> Iterable[tuple[str, Stamp]]:
    """Every file in a folder, by its name in there."""
    for parent, _, names in os.walk(folder):
        for name in names:
            file = pathlib.Path(parent, name)
            with contextlib.suppress(FileNotFoundError):  # gone since it was listed
                yield str(file.relative_to(folder)), _stamp(file)


def _stamp(file: pathlib.Path) -> Stamp:
    status = file.stat()
    return status.st_mtime_ns, status.st_size


def _rank(name: str) -> tuple[bool, bool, str]:
    """Manifests after the files they name, a run's own after those of its earlier steps."""
    is_manifest = "/manifest" in name
    return is_manifest, is_manifest and name.count("/") == 1, name
